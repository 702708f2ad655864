// Advanced SIMD, rows/simd.def. A base of Visitor (visitor.h).
//
// Many rows differ in one micro-op only. The lists below give, per shape of encoding, a row's stem
// and what the shape's translation needs to know; methods are declared and defined from them.
#pragma once

#include <cstdint>

#include "device_sim/uir/helpers.h"
#include "translator/a64/float_visitor.h"

namespace gpusim::a64 {

// --- three registers of the same type
// X(stem, micro-op, class), elementwise; scalar forms of those in the second list have 64 bits.
#define GPUSIM_A64_ELEMENTWISE(X)    \
  X(SMAX, vsmax, kIntegerComparison) \
  X(SMIN, vsmin, kIntegerComparison) \
  X(UMAX, vumax, kIntegerComparison) \
  X(UMIN, vumin, kIntegerComparison) \
  X(MUL, vmul, kIntegerArithmetic)
#define GPUSIM_A64_ELEMENTWISE_SCALAR(X) \
  X(ADD, vadd, kIntegerArithmetic)       \
  X(SUB, vsub, kIntegerArithmetic)       \
  X(CMGT, vcmgt, kIntegerComparison)     \
  X(CMGE, vcmge, kIntegerComparison)     \
  X(CMHI, vcmhi, kIntegerComparison)     \
  X(CMHS, vcmhs, kIntegerComparison)     \
  X(CMTST, vcmtst, kIntegerComparison)   \
  X(CMEQ, vcmeq, kIntegerComparison)
// X(stem, helper, its immediate)
#define GPUSIM_A64_HELPER_2(X) \
  X(SHADD, vhadd, 1)           \
  X(UHADD, vhadd, 0)           \
  X(SRHADD, vhadd, 5)          \
  X(URHADD, vhadd, 4)          \
  X(SHSUB, vhadd, 3)           \
  X(UHSUB, vhadd, 2)
#define GPUSIM_A64_HELPER_2_SCALAR(X) \
  X(SSHL, vshift, 1)                  \
  X(USHL, vshift, 0)                  \
  X(SRSHL, vshift, 3)                 \
  X(URSHL, vshift, 2)
#define GPUSIM_A64_SATURATING_2(X) /* scalar forms of every size */ \
  X(SQADD, sqadd, 0)                                                \
  X(UQADD, uqadd, 0)                                                \
  X(SQSUB, sqsub, 0)                                                \
  X(UQSUB, uqsub, 0)                                                \
  X(SQSHL_reg, sqshl, 0)                                            \
  X(UQSHL_reg, uqshl, 0)                                            \
  X(SQRSHL, sqshl, 1)                                               \
  X(UQRSHL, uqshl, 1)                                               \
  X(SQDMULH, sqdmulh, 0)                                            \
  X(SQRDMULH, sqdmulh, 1)
// X(stem, micro-op)
#define GPUSIM_A64_PAIRWISE(X) \
  X(SMAXP, vsmax)              \
  X(SMINP, vsmin)              \
  X(UMAXP, vumax)              \
  X(UMINP, vumin)

// --- three registers of different types: X(stem, micro-op on the widened operands, signed)
#define GPUSIM_A64_LONG(X) \
  X(SADDL, vadd, true)     \
  X(SSUBL, vsub, true)     \
  X(UADDL, vadd, false)    \
  X(USUBL, vsub, false)    \
  X(SMULL, vmul, true)     \
  X(UMULL, vmul, false)
#define GPUSIM_A64_WIDE(X) \
  X(SADDW, vadd, true)     \
  X(SSUBW, vsub, true)     \
  X(UADDW, vadd, false)    \
  X(USUBW, vsub, false)
#define GPUSIM_A64_LONG_ACCUMULATE(X) \
  X(SMLAL, vmla, true)                \
  X(SMLSL, vmls, true)                \
  X(UMLAL, vmla, false)               \
  X(UMLSL, vmls, false)
// X(stem, micro-op, rounding)
#define GPUSIM_A64_NARROW_HIGH(X) \
  X(ADDHN, vadd, false)           \
  X(SUBHN, vsub, false)           \
  X(RADDHN, vadd, true)           \
  X(RSUBHN, vsub, true)
// X(stem, micro-op that accumulates, or none)
#define GPUSIM_A64_DOUBLING_LONG(X) \
  X(SQDMULL, Accumulate::kNone)     \
  X(SQDMLAL, Accumulate::kAdd)      \
  X(SQDMLSL, Accumulate::kSubtract)

// --- floating point: X(stem, operation); all have a vector form, those of the second list also a
// scalar one among the vector instructions
#define GPUSIM_A64_FP_2(X) \
  X(FADD, kAdd)            \
  X(FSUB, kSub)            \
  X(FMUL, kMul)            \
  X(FDIV, kDiv)            \
  X(FMAX, kMax)            \
  X(FMIN, kMin)            \
  X(FMAXNM, kMaxNum)       \
  X(FMINNM, kMinNum)
#define GPUSIM_A64_FP_2_SCALAR(X) \
  X(FMULX, kMulX)                 \
  X(FRECPS, kRecipStep)           \
  X(FRSQRTS, kRsqrtStep)          \
  X(FABD, kAbsDiff)               \
  X(FCMEQ, kEq)                   \
  X(FCMGE, kGe)                   \
  X(FCMGT, kGt)                   \
  X(FACGE, kAbsGe)                \
  X(FACGT, kAbsGt)
#define GPUSIM_A64_FP_PAIRWISE(X) \
  X(FADDP, kAdd)                  \
  X(FMAXP, kMax)                  \
  X(FMINP, kMin)                  \
  X(FMAXNMP, kMaxNum)             \
  X(FMINNMP, kMinNum)
#define GPUSIM_A64_FP_ACROSS(X) \
  X(FMAXV, kMax)                \
  X(FMINV, kMin)                \
  X(FMAXNMV, kMaxNum)           \
  X(FMINNMV, kMinNum)
// X(stem, comparison, whether zero is the left operand)
#define GPUSIM_A64_FP_COMPARE_ZERO(X) \
  X(FCMEQ, kEq, false)                \
  X(FCMGE, kGe, false)                \
  X(FCMGT, kGt, false)                \
  X(FCMLE, kGe, true)                 \
  X(FCMLT, kGt, true)
// X(stem, rounding)
#define GPUSIM_A64_FP_ROUND(X) \
  X(FRINTN, kNearestEven)      \
  X(FRINTP, kPlusInf)          \
  X(FRINTM, kMinusInf)         \
  X(FRINTZ, kZero)             \
  X(FRINTA, kNearestAway)      \
  X(FRINTX, kFpcrExact)        \
  X(FRINTI, kFpcr)
// X(stem, rounding, integer bits)
#define GPUSIM_A64_FP_ROUND_N(X) \
  X(FRINT32Z, kZero, 32)         \
  X(FRINT32X, kFpcr, 32)         \
  X(FRINT64Z, kZero, 64)         \
  X(FRINT64X, kFpcr, 64)
// X(stem, rounding, signed)
#define GPUSIM_A64_FP_TO_INT(X)  \
  X(FCVTNS, kNearestEven, true)  \
  X(FCVTNU, kNearestEven, false) \
  X(FCVTPS, kPlusInf, true)      \
  X(FCVTPU, kPlusInf, false)     \
  X(FCVTMS, kMinusInf, true)     \
  X(FCVTMU, kMinusInf, false)    \
  X(FCVTAS, kNearestAway, true)  \
  X(FCVTAU, kNearestAway, false) \
  X(FCVTZS_int, kZero, true)     \
  X(FCVTZU_int, kZero, false)
// X(stem, FpMisc1)
#define GPUSIM_A64_FP_ESTIMATE(X) \
  X(FRECPE, kRecipEstimate)       \
  X(FRSQRTE, kRsqrtEstimate)

// --- two registers
// X(stem, comparison, whether zero is the left operand)
#define GPUSIM_A64_COMPARE_ZERO(X) \
  X(CMGT, vcmgt, false)            \
  X(CMGE, vcmge, false)            \
  X(CMEQ, vcmeq, false)            \
  X(CMLE, vcmge, true)             \
  X(CMLT, vcmgt, true)
// X(stem, flags of the helper qshrn): 1 rounding, 2 signed source, 4 signed result
#define GPUSIM_A64_SATURATING_NARROW(X) \
  X(SQXTN, 6)                           \
  X(SQXTUN, 2)                          \
  X(UQXTN, 0)
// X(stem, micro-op)
#define GPUSIM_A64_ACROSS(X) \
  X(SMAXV, vsmax)            \
  X(SMINV, vsmin)            \
  X(UMAXV, vumax)            \
  X(UMINV, vumin)            \
  X(ADDV, vadd)

// --- shifts by an immediate: X(stem, signed, rounding, accumulating)
#define GPUSIM_A64_SHIFT_RIGHT(X) \
  X(SSHR, true, false, false)     \
  X(USHR, false, false, false)    \
  X(SSRA, true, false, true)      \
  X(USRA, false, false, true)     \
  X(SRSHR, true, true, false)     \
  X(URSHR, false, true, false)    \
  X(SRSRA, true, true, true)      \
  X(URSRA, false, true, true)
// X(stem, flags of the helper qshrn)
#define GPUSIM_A64_SHIFT_NARROW(X) \
  X(SQSHRN, 6)                     \
  X(SQRSHRN, 7)                    \
  X(SQSHRUN, 2)                    \
  X(SQRSHRUN, 3)                   \
  X(UQSHRN, 0)                     \
  X(UQRSHRN, 1)

// --- extensions
// X(stem, operands n and m signed)
#define GPUSIM_A64_DOT(X) \
  X(SDOT, true, true)     \
  X(UDOT, false, false)   \
  X(USDOT, false, true)
#define GPUSIM_A64_MATRIX(X) \
  X(SMMLA, true, true)       \
  X(UMMLA, false, false)     \
  X(USMMLA, false, true)
// X(stem, subtract)
#define GPUSIM_A64_ROUNDING_DOUBLING(X) \
  X(SQRDMLAH, 0)                        \
  X(SQRDMLSH, 1)
// X(stem, subtract, which half of the operands)
#define GPUSIM_A64_FP_LONG(X) \
  X(FMLAL, false, 0)          \
  X(FMLSL, true, 0)           \
  X(FMLAL2, false, 1)         \
  X(FMLSL2, true, 1)
// X(stem, helper, its immediate)
#define GPUSIM_A64_SHA1_ROUNDS(X) \
  X(SHA1C, 0)                     \
  X(SHA1P, 1)                     \
  X(SHA1M, 2)
#define GPUSIM_A64_SM3_TT(X) \
  X(SM3TT1A, 0)              \
  X(SM3TT1B, 1)              \
  X(SM3TT2A, 2)              \
  X(SM3TT2B, 3)

class SimdVisitor : public FloatVisitor {
 public:
  // --- simd_three_same.cpp
#define X(name, ...) bool name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d);
  GPUSIM_A64_ELEMENTWISE(X)
  GPUSIM_A64_ELEMENTWISE_SCALAR(X)
  GPUSIM_A64_HELPER_2(X)
  GPUSIM_A64_HELPER_2_SCALAR(X)
  GPUSIM_A64_SATURATING_2(X)
  GPUSIM_A64_PAIRWISE(X)
  X(ADDP)
  X(SABD)
  X(UABD)
  X(SABA)
  X(UABA)
  X(MLA)
  X(MLS)
#undef X
#define X(name, ...) bool name##_s(Reg m, Reg n, Reg d);
  GPUSIM_A64_ELEMENTWISE_SCALAR(X)
  GPUSIM_A64_HELPER_2_SCALAR(X)
#undef X
#define X(name, ...) bool name##_s(uint32_t y, Reg m, Reg n, Reg d);
  GPUSIM_A64_SATURATING_2(X)
#undef X
#define X(name) bool name##_v(bool q, Reg m, Reg n, Reg d);
  X(PMUL)
  X(AND)
  X(BIC)
  X(ORR)
  X(ORN)
  X(EOR)
  X(BSL)
  X(BIT)
  X(BIF)
#undef X

  // --- simd_three_different.cpp
#define X(name, ...) bool name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d);
  GPUSIM_A64_LONG(X)
  GPUSIM_A64_WIDE(X)
  GPUSIM_A64_LONG_ACCUMULATE(X)
  GPUSIM_A64_NARROW_HIGH(X)
  GPUSIM_A64_DOUBLING_LONG(X)
  X(SABDL)
  X(UABDL)
  X(SABAL)
  X(UABAL)
  X(PMULL)
#undef X
#define X(name, ...) bool name##_s(uint32_t y, Reg m, Reg n, Reg d);
  GPUSIM_A64_DOUBLING_LONG(X)
#undef X

  // --- simd_float.cpp
#define X(name, ...)                                      \
  bool name##_v(bool q, uint32_t f, Reg m, Reg n, Reg d); \
  bool name##_v_h(bool q, Reg m, Reg n, Reg d);
  GPUSIM_A64_FP_2(X)
  GPUSIM_A64_FP_2_SCALAR(X)
  GPUSIM_A64_FP_PAIRWISE(X)
  X(FMLA)
  X(FMLS)
#undef X
#define X(name, ...)                              \
  bool name##_s(uint32_t f, Reg m, Reg n, Reg d); \
  bool name##_s_h(Reg m, Reg n, Reg d);
  GPUSIM_A64_FP_2_SCALAR(X)
#undef X
#define X(name, ...)                       \
  bool name##_s(uint32_t f, Reg n, Reg d); \
  bool name##_s_h(Reg n, Reg d);
  GPUSIM_A64_FP_PAIRWISE(X)
#undef X
#define X(name, ...)           \
  bool name##_v(Reg n, Reg d); \
  bool name##_v_h(bool q, Reg n, Reg d);
  GPUSIM_A64_FP_ACROSS(X)
#undef X

  // --- simd_float_convert.cpp
#define X(name, ...)                                    \
  bool name##_zero_v(bool q, uint32_t f, Reg n, Reg d); \
  bool name##_zero_v_h(bool q, Reg n, Reg d);           \
  bool name##_zero_s(uint32_t f, Reg n, Reg d);         \
  bool name##_zero_s_h(Reg n, Reg d);
  GPUSIM_A64_FP_COMPARE_ZERO(X)
#undef X
#define X(name, ...)                               \
  bool name##_v(bool q, uint32_t f, Reg n, Reg d); \
  bool name##_v_h(bool q, Reg n, Reg d);
  GPUSIM_A64_FP_ROUND(X)
  GPUSIM_A64_FP_TO_INT(X)
  GPUSIM_A64_FP_ESTIMATE(X)
  X(SCVTF_int)
  X(UCVTF_int)
  X(FABS)
  X(FNEG)
  X(FSQRT)
#undef X
#define X(name, ...)                       \
  bool name##_s(uint32_t f, Reg n, Reg d); \
  bool name##_s_h(Reg n, Reg d);
  GPUSIM_A64_FP_TO_INT(X)
  GPUSIM_A64_FP_ESTIMATE(X)
  X(SCVTF_int)
  X(UCVTF_int)
  X(FRECPX)
#undef X
#define X(name, ...) bool name##_v(bool q, uint32_t f, Reg n, Reg d);
  GPUSIM_A64_FP_ROUND_N(X)
  X(FCVTN)
  X(FCVTL)
#undef X
  bool FCVTXN_v(bool q, Reg n, Reg d);
  bool FCVTXN_s(Reg n, Reg d);
  bool URECPE_v(bool q, Reg n, Reg d);
  bool URSQRTE_v(bool q, Reg n, Reg d);
#define X(name)                                                \
  bool name##_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d); \
  bool name##_s(uint32_t j, uint32_t l, Reg n, Reg d);
  X(SCVTF_fix)
  X(UCVTF_fix)
  X(FCVTZS_fix)
  X(FCVTZU_fix)
#undef X

  // --- simd_two_registers.cpp
#define X(name, ...)                                    \
  bool name##_zero_v(bool q, uint32_t y, Reg n, Reg d); \
  bool name##_zero_s(Reg n, Reg d);
  GPUSIM_A64_COMPARE_ZERO(X)
#undef X
#define X(name, ...) bool name##_v(bool q, uint32_t y, Reg n, Reg d);
  GPUSIM_A64_SATURATING_NARROW(X)
  GPUSIM_A64_ACROSS(X)
  X(REV64)
  X(SADDLP)
  X(UADDLP)
  X(SADALP)
  X(UADALP)
  X(SUQADD)
  X(USQADD)
  X(CLS)
  X(CLZ)
  X(SQABS)
  X(SQNEG)
  X(ABS)
  X(NEG)
  X(XTN)
  X(SHLL)
  X(SADDLV)
  X(UADDLV)
  X(REV32)
#undef X
#define X(name, ...) bool name##_s(uint32_t y, Reg n, Reg d);
  GPUSIM_A64_SATURATING_NARROW(X)
  X(SUQADD)
  X(USQADD)
  X(SQABS)
  X(SQNEG)
#undef X
  bool REV16_v(bool q, Reg n, Reg d);
  bool CNT_v(bool q, Reg n, Reg d);
  bool NOT_v(bool q, Reg n, Reg d);
  bool RBIT_v(bool q, Reg n, Reg d);
  bool ABS_s(Reg n, Reg d);
  bool NEG_s(Reg n, Reg d);
  bool ADDP_s(Reg n, Reg d);

  // --- simd_shift.cpp. j immh, l immb
#define X(name, ...)                                           \
  bool name##_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d); \
  bool name##_s(uint32_t j, uint32_t l, Reg n, Reg d);
  GPUSIM_A64_SHIFT_RIGHT(X)
  GPUSIM_A64_SHIFT_NARROW(X)
  X(SHL)
  X(SLI)
  X(SRI)
  X(SQSHL_imm)
  X(UQSHL_imm)
  X(SQSHLU)
#undef X
#define X(name) bool name##_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d);
  X(SHRN)
  X(RSHRN)
  X(SSHLL)
  X(USHLL)
#undef X

  // --- simd_permute.cpp
  bool DUP_elt_v(bool q, uint32_t i, Reg n, Reg d);
  bool DUP_gpr_v(bool q, uint32_t i, Reg n, Reg d);
  bool SMOV_v(bool q, uint32_t i, Reg n, Reg d);
  bool UMOV_v(bool q, uint32_t i, Reg n, Reg d);
  bool INS_gpr_v(uint32_t i, Reg n, Reg d);
  bool INS_elt_v(uint32_t i, uint32_t l, Reg n, Reg d);
  bool DUP_elt_s(uint32_t i, Reg n, Reg d);
#define X(name) bool name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d);
  X(UZP1)
  X(UZP2)
  X(ZIP1)
  X(ZIP2)
  X(TRN1)
  X(TRN2)
#undef X
  bool TBL_v(bool q, Reg m, uint32_t l, Reg n, Reg d);
  bool TBX_v(bool q, Reg m, uint32_t l, Reg n, Reg d);
  bool EXT_v(bool q, Reg m, uint32_t i, Reg n, Reg d);
  bool MOVI_family_v(bool q, bool o, uint32_t h, uint32_t k, uint32_t i, Reg d);
  bool FMOV_imm_v_h(bool q, uint32_t h, uint32_t i, Reg d);

  // --- simd_by_element.cpp. The index is in H:L:M and, with the register, in m.
#define X(name, ...)                                                                           \
  bool name##_elt_v(bool q, uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, \
                    Reg d);
  GPUSIM_A64_LONG_ACCUMULATE(X)
  GPUSIM_A64_DOUBLING_LONG(X)
  X(SMULL)
  X(UMULL)
  X(MUL)
  X(MLA)
  X(MLS)
  X(SQDMULH)
  X(SQRDMULH)
#undef X
#define X(name, ...) \
  bool name##_elt_s(uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);
  GPUSIM_A64_DOUBLING_LONG(X)
  X(SQDMULH)
  X(SQRDMULH)
#undef X
#define X(name)                                                                                \
  bool name##_elt_v(bool q, uint32_t f, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, \
                    Reg d);                                                                    \
  bool name##_elt_v_h(bool q, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);   \
  bool name##_elt_s(uint32_t f, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d); \
  bool name##_elt_s_h(uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);
  X(FMLA)
  X(FMLS)
  X(FMUL)
  X(FMULX)
#undef X

  // --- simd_structure.cpp: loads and stores of structures
  bool ST_multi(bool q, uint32_t o, uint32_t y, Reg n, Reg t);
  bool LD_multi(bool q, uint32_t o, uint32_t y, Reg n, Reg t);
  bool ST_multi_post(bool q, Reg m, uint32_t o, uint32_t y, Reg n, Reg t);
  bool LD_multi_post(bool q, Reg m, uint32_t o, uint32_t y, Reg n, Reg t);
  bool ST_single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t);
  bool LD_single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t);
  bool ST_single_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t);
  bool LD_single_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t);
  bool LD_replicate(bool q, uint32_t R, uint32_t o, uint32_t y, Reg n, Reg t);
  bool LD_replicate_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t y, Reg n, Reg t);

  // --- simd_products.cpp: FEAT_RDM, FEAT_DotProd, FEAT_I8MM
#define X(name, ...)                                                                           \
  bool name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d);                                      \
  bool name##_s(uint32_t y, Reg m, Reg n, Reg d);                                              \
  bool name##_elt_v(bool q, uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, \
                    Reg d);                                                                    \
  bool name##_elt_s(uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);
  GPUSIM_A64_ROUNDING_DOUBLING(X)
#undef X
#define X(name, ...)                          \
  bool name##_v(bool q, Reg m, Reg n, Reg d); \
  bool name##_elt_v(bool q, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);
  GPUSIM_A64_DOT(X)
  GPUSIM_A64_FP_LONG(X)  // simd_complex.cpp
  X(BFDOT)
  X(BFMLAL)
#undef X
  bool SUDOT_elt_v(bool q, uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d);
#define X(name, ...) bool name##_v(Reg m, Reg n, Reg d);
  GPUSIM_A64_MATRIX(X)
  X(BFMMLA)
#undef X

  // --- simd_complex.cpp: FEAT_FCMA, FEAT_FHM, FEAT_BF16. rot: in quarter turns
  bool FCADD_v(bool q, uint32_t y, Reg m, uint32_t rot, Reg n, Reg d);
  bool FCMLA_v(bool q, uint32_t y, Reg m, uint32_t rot, Reg n, Reg d);
  bool FCMLA_elt_v(bool q, uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t rot, uint32_t H,
                   Reg n, Reg d);
  bool BFCVTN_v(bool q, Reg n, Reg d);
  bool BFCVT(Reg n, Reg d);

  // --- simd_crypto.cpp
#define X(name, ...) bool name(Reg n, Reg d);
  X(AESE)
  X(AESD)
  X(AESMC)
  X(AESIMC)
  X(SHA1H)
  X(SHA1SU1)
  X(SHA256SU0)
  X(SHA512SU0)
  X(SM4E)
#undef X
#define X(name, ...) bool name(Reg m, Reg n, Reg d);
  GPUSIM_A64_SHA1_ROUNDS(X)
  X(SHA1SU0)
  X(SHA256H)
  X(SHA256H2)
  X(SHA256SU1)
  X(SHA512H)
  X(SHA512H2)
  X(SHA512SU1)
  X(RAX1)
  X(SM3PARTW1)
  X(SM3PARTW2)
  X(SM4EKEY)
#undef X
  bool EOR3(Reg m, Reg a, Reg n, Reg d);
  bool BCAX(Reg m, Reg a, Reg n, Reg d);
  bool XAR(Reg m, uint32_t i, Reg n, Reg d);
  bool SM3SS1(Reg m, Reg a, Reg n, Reg d);
#define X(name, ...) bool name(Reg m, uint32_t i, Reg n, Reg d);
  GPUSIM_A64_SM3_TT(X)
#undef X

 protected:
  explicit SimdVisitor(BlockBuilder& builder) : FloatVisitor(builder) {}

 private:
  enum class Accumulate : uint8_t { kNone, kAdd, kSubtract };

  // Half 0 or 1 of a vector register.
  static Slot v(uint32_t r, uint32_t half) { return static_cast<Slot>(kV0 + 2 * r + half); }
  static uint8_t u8(uint64_t x) { return static_cast<uint8_t>(x); }
  // A word with `x` in each element of 8 << y bits.
  static uint64_t splat(uint64_t x, uint32_t y) {
    const int bits = 8 << y;
    const uint64_t element = ~uint64_t{0} >> (64 - bits);
    return (x & element) * (~uint64_t{0} / element);
  }
  // Halves in an order in which results may overwrite the half of a source that all of them read,
  // half `read`: that one last.
  static uint32_t half_in_order(uint32_t step, uint32_t read) { return read ? step : 1 - step; }
  // After the last half of a destination.
  bool end_vector(bool q, Reg d) {
    if (!q) clear_high(d);
    return true;
  }
  Slot konst(uint64_t value) {
    const Slot t = b_.temp();
    b_.konst(t, value);
    return t;
  }
  void op3(MicroOp op, Slot d, Slot a, Slot b, uint32_t y) { b_.emit(op, d, a, b, 0, 0, u8(y)); }
  void help1(Helper1 h, Slot d, Slot a, uint32_t y, uint64_t imm = 0) {
    b_.help1(d, a, imm, u8(y), helper_number(h));
  }
  void help2(Helper2 h, Slot d, Slot a, Slot b, uint32_t y, uint64_t imm = 0) {
    b_.help2(d, a, b, imm, u8(y), helper_number(h));
  }
  // `parameters` go to the immediate's bits from 16 up.
  void fhelp1(FpHelper1 h, Slot d, Slot a, uint32_t y, uint64_t parameters = 0) {
    b_.fhelp1(d, a, u8(y), helper_number(h) | parameters << 16);
  }
  void fhelp2(FpHelper2 h, Slot d, Slot a, Slot b, uint32_t y, uint64_t parameters = 0) {
    b_.fhelp2(d, a, b, u8(y), helper_number(h) | parameters << 16);
  }
  // A temporary with the low element of a alone.
  Slot low_element(Slot a, uint32_t y);
  // d = sext or zext of the elements in half `half` of a.
  void widen(bool is_signed, Slot d, Slot a, uint32_t half, uint32_t y);

  bool elementwise(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool helper_2(Helper2 h, uint64_t imm, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool saturating_2(FpHelper2 h, uint64_t parameters, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool saturating_2_scalar(FpHelper2 h, uint64_t parameters, uint32_t y, Reg m, Reg n, Reg d);
  bool logical(MicroOp op, bool q, Reg m, Reg n, Reg d);
  bool bit_select(bool q, Reg d, Reg if_set, Reg if_clear, Reg mask);
  bool pairwise(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d);
  // The pair of halves whose adjacent elements become half `half` of a pairwise result.
  struct SlotPair {
    Slot low, high;
  };
  static SlotPair pair_sources(bool q, uint32_t half, Reg m, Reg n);
  void absolute_difference(bool is_signed, Slot d, Slot a, Slot b, uint32_t y);
  bool difference(bool is_signed, bool accumulate, bool q, uint32_t y, Reg m, Reg n, Reg d);

  bool long_op(MicroOp op, bool is_signed, bool q, uint32_t y, Slot m_half, Reg n, Reg d);
  bool long_accumulate(MicroOp op, bool is_signed, bool q, uint32_t y, Slot m_half, Reg n, Reg d);
  bool wide_op(MicroOp op, bool is_signed, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool narrow_high(MicroOp op, bool rounding, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool long_difference(bool is_signed, bool accumulate, bool q, uint32_t y, Reg m, Reg n, Reg d);
  void doubling_long(Accumulate a, Slot d, Slot n, Slot m, uint32_t half, uint32_t y);
  bool doubling_long_vector(Accumulate a, bool q, uint32_t y, Slot m_half, Reg n, Reg d);
  bool doubling_long_scalar(Accumulate a, uint32_t y, Slot m_element, Reg n, Reg d);

  // Floating point on one half, elementwise.
  void vector2(Fp2 k, FpFormat f, Slot d, Slot a, Slot b);
  void vector_muladd(FpFormat f, Slot d, Slot a, Slot b, Slot c);
  bool fp_2(Fp2 k, FpFormat f, bool q, Reg m, Reg n, Reg d);
  bool fp_fused(bool negate, FpFormat f, bool q, Reg m, Reg n, Reg d);
  bool fp_pairwise(Fp2 k, FpFormat f, bool q, Reg m, Reg n, Reg d);
  bool fp_pairwise_scalar(Fp2 k, FpFormat f, Reg n, Reg d);
  bool fp_across(Fp2 k, FpFormat f, bool q, Reg n, Reg d);
  bool fp_scalar(Fp2 k, FpFormat f, Reg m, Reg n, Reg d);
  bool fp_compare_zero(Fp2 k, bool swap, FpFormat f, bool q, Reg n, Reg d);
  bool fp_compare_zero_scalar(Fp2 k, bool swap, FpFormat f, Reg n, Reg d);
  bool fp_round(FpRounding r, FpFormat f, bool q, Reg n, Reg d);
  bool fp_round_n(FpRounding r, uint32_t int_bits, FpFormat f, bool q, Reg n, Reg d);
  bool fp_to_int(FpRounding r, bool is_signed, FpFormat f, bool q, Reg n, Reg d,
                 uint32_t fraction_bits = 0);
  bool fp_to_int_scalar(FpRounding r, bool is_signed, FpFormat f, Reg n, Reg d,
                        uint32_t fraction_bits = 0);
  bool fp_from_int(bool is_signed, FpFormat f, bool q, Reg n, Reg d, uint32_t fraction_bits = 0);
  bool fp_from_int_scalar(bool is_signed, FpFormat f, Reg n, Reg d, uint32_t fraction_bits = 0);
  bool fp_misc1(FpMisc1 k, FpFormat f, bool q, Reg n, Reg d);
  bool fp_misc1_scalar(FpMisc1 k, FpFormat f, Reg n, Reg d);
  bool fp_sign(MicroOp op, FpFormat f, bool q, Reg n, Reg d);

  bool compare_zero(MicroOp op, bool swap, bool q, uint32_t y, Reg n, Reg d);
  bool saturating_narrow(uint32_t flags, uint32_t shift, bool q, uint32_t y, Reg n, Reg d);
  bool saturating_narrow_scalar(uint32_t flags, uint32_t shift, uint32_t y, Reg n, Reg d);
  bool helper_1(Helper1 h, uint64_t imm, bool q, uint32_t y, Reg n, Reg d);
  bool saturating_1(FpHelper1 h, uint64_t parameters, bool q, uint32_t y, Reg n, Reg d);
  bool saturating_1_scalar(FpHelper1 h, uint64_t parameters, uint32_t y, Reg n, Reg d);
  void add_long_pairs(bool is_signed, Slot d, Slot a, uint32_t y);
  bool long_pairwise(bool is_signed, bool accumulate, bool q, uint32_t y, Reg n, Reg d);
  // Folds the elements of a register, of 8 << y bits, to the low one of `t`; the others become
  // meaningless.
  void fold(MicroOp op, Slot t, bool q, uint32_t y, Slot low, Slot high);
  bool across(MicroOp op, bool q, uint32_t y, Reg n, Reg d);
  bool across_long(bool is_signed, bool q, uint32_t y, Reg n, Reg d);

  bool shift_right(bool is_signed, bool rounding, bool accumulate, bool q, uint32_t j, uint32_t l,
                   Reg n, Reg d);
  bool shift_insert(bool left, bool q, uint32_t j, uint32_t l, Reg n, Reg d);
  bool shift_narrow(bool rounding, bool q, uint32_t j, uint32_t l, Reg n, Reg d);
  bool shift_long(bool is_signed, bool q, uint32_t j, uint32_t l, Reg n, Reg d);
  bool shift_saturating(FpHelper2 h, bool q, uint32_t j, uint32_t l, Reg n, Reg d);
  bool shift_saturating_scalar(FpHelper2 h, uint32_t j, uint32_t l, Reg n, Reg d);

  // d = element `index` of register r, elements of 8 << y bits.
  void extract(Slot d, Reg r, uint32_t index, uint32_t y);
  bool insert_element(Slot from, Reg d, uint32_t index, uint32_t y);
  bool unzip(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool zip(uint32_t half, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool transpose(uint32_t odd, bool q, uint32_t y, Reg m, Reg n, Reg d);
  bool table(bool keep, bool q, Reg m, uint32_t l, Reg n, Reg d);

  // A temporary with an element in all places. y: log2 of its bytes.
  Slot splat_element(uint32_t r, uint32_t index, uint32_t y);
  // The indexed element of by-element forms.
  struct Element {
    uint32_t reg, index;
  };
  static Element element_of(uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H);
  Slot splat_of(uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t H) {
    const Element e = element_of(y, L, M, m, H);
    return splat_element(e.reg, e.index, y);
  }
  enum class FpElement : uint8_t { kMla, kMls, kMul, kMulX };
  bool fp_by_element(FpElement k, FpFormat f, bool q, Slot element, Reg n, Reg d);
  bool fp_by_element_scalar(FpElement k, FpFormat f, Slot element, Reg n, Reg d);
  Slot fp_element(FpFormat f, uint32_t L, uint32_t M, uint32_t m, uint32_t H);

  void rounding_doubling(uint32_t subtract, Slot d, Slot a, Slot b, Slot c, uint32_t y);
  // Temporaries of `dot`, so that several share them.
  struct DotTemps {
    Slot a, b, even, odd, sum;
  };
  DotTemps dot_temps() { return {b_.temp(), b_.temp(), b_.temp(), b_.temp(), b_.temp()}; }
  // t.sum = per element of 32 bits the sum of its four products of bytes.
  void dot(const DotTemps& t, bool n_signed, bool m_signed, Slot n, Slot m);
  bool dot_add(bool n_signed, bool m_signed, bool q, Slot m_low, Slot m_high, Reg n, Reg d);
  bool matrix_add(bool n_signed, bool m_signed, Reg m, Reg n, Reg d);

  // Complex numbers: pairs of elements, the real part first.
  Slot complex_swapped(FpFormat f, Slot a);
  Slot complex_part(FpFormat f, bool imaginary, Slot a);
  // A temporary with signs changed; `half` of the register matters for doubles.
  Slot complex_negated(FpFormat f, bool real, bool imaginary, uint32_t half, Slot a);
  bool complex_muladd(FpFormat f, uint32_t rot, bool q, Slot m_low, Slot m_high, Reg n, Reg d);
  bool fp_long(bool subtract, uint32_t part, bool q, Slot m, Reg n, Reg d);
  bool bf_dot(bool q, Slot m_low, Slot m_high, Reg n, Reg d);
  bool bf_muladd_long(bool top, Slot m_low, Slot m_high, Reg n, Reg d);

  bool aes_round(bool inverse, Reg n, Reg d);
  bool aes_mix(bool inverse, Reg n, Reg d);
  bool sha1_rounds(uint32_t function, Reg m, Reg n, Reg d);
  bool sha256_rounds(bool first, Reg m, Reg abcd, Reg efgh, Reg d);
  bool sm3_tt(uint32_t kind, Reg m, uint32_t i, Reg n, Reg d);
  bool sm4_rounds(uint32_t key, Slot low, Slot high, Reg keys, Reg d);
  // d = each element of 8 << y bits of a rotated left. Neither is the scratch slot.
  void rotate_left(Slot d, Slot a, uint32_t n, uint32_t y, Slot scratch);
  // A temporary: each element rotated right by `first` and by `second`, and shifted right by
  // `third`
  // (`third_rotates`: rotated), all exclusive-ored.
  Slot sigma(Slot a, uint32_t y, uint32_t first, uint32_t second, uint32_t third,
             bool third_rotates = false);
  // a ^ a rotated left by 15 ^ by 23, elements of 32 bits.
  Slot sm3_permuted(Slot a);
  void set_both(Reg d, Slot low, Slot high) {
    b_.mov(v_low(d), low);
    b_.mov(v_high(d), high);
  }

  void post_index(Reg n, Reg m, uint32_t bytes);
  bool multiple(bool load, bool q, uint32_t o, uint32_t y, Reg n, Reg t);
  void load_half(uint32_t count, uint32_t half, uint32_t y, Slot base, Reg t);
  void store_half(uint32_t count, uint32_t half, uint32_t y, Slot base, Reg t);
  // d = eight of the 24 bytes of three words.
  void gather_bytes(Slot d, const Slot words[3], uint64_t indexes, Slot scratch[2]);
  struct Single {
    uint32_t count, index, y;
  };
  static Single single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y);
  bool single_structure(bool load, const Single& s, Reg n, Reg t);
  bool replicate(bool q, uint32_t count, uint32_t y, Reg n, Reg t);
};

}  // namespace gpusim::a64
