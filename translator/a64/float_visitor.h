// Scalar floating point, rows/float.def. A base of Visitor (visitor.h): its methods are the
// visitor's; they are declared apart because there are so many.
#pragma once

#include <cstdint>

#include "translator/a64/registers.h"
#include "translator/common/block_builder.h"
#include "translator/common/visit.h"

namespace gpusim::a64 {

// gpusim::a64::Op names decode rows; gpusim::Op names micro-ops.
using MicroOp = gpusim::Op;

class FloatVisitor {
 public:
  // --- float.cpp. `f`: 0 single, 1 double, 3 half.
#define GPUSIM_FLOAT_1(name) bool name(uint32_t f, Reg n, Reg d);
  GPUSIM_FLOAT_1(FMOV_reg)
  GPUSIM_FLOAT_1(FABS)
  GPUSIM_FLOAT_1(FNEG)
  GPUSIM_FLOAT_1(FSQRT)
  GPUSIM_FLOAT_1(FRINTN)
  GPUSIM_FLOAT_1(FRINTP)
  GPUSIM_FLOAT_1(FRINTM)
  GPUSIM_FLOAT_1(FRINTZ)
  GPUSIM_FLOAT_1(FRINTA)
  GPUSIM_FLOAT_1(FRINTX)
  GPUSIM_FLOAT_1(FRINTI)
  GPUSIM_FLOAT_1(FRINT32Z)
  GPUSIM_FLOAT_1(FRINT32X)
  GPUSIM_FLOAT_1(FRINT64Z)
  GPUSIM_FLOAT_1(FRINT64X)
#undef GPUSIM_FLOAT_1
  bool FCVT(uint32_t f, uint32_t to, Reg n, Reg d);
  bool FCMP(uint32_t f, Reg m, Reg n);
  bool FCMP_zero(uint32_t f, Reg n);
  bool FCMPE(uint32_t f, Reg m, Reg n);
  bool FCMPE_zero(uint32_t f, Reg n);
  bool FCCMP(uint32_t f, Reg m, uint32_t cond, Reg n, uint32_t nzcv);
  bool FCCMPE(uint32_t f, Reg m, uint32_t cond, Reg n, uint32_t nzcv);
  bool FMOV_imm(uint32_t f, uint32_t imm8, Reg d);
  bool FCSEL(uint32_t f, Reg m, uint32_t cond, Reg n, Reg d);
#define GPUSIM_FLOAT_2(name) bool name(uint32_t f, Reg m, Reg n, Reg d);
  GPUSIM_FLOAT_2(FMUL)
  GPUSIM_FLOAT_2(FDIV)
  GPUSIM_FLOAT_2(FADD)
  GPUSIM_FLOAT_2(FSUB)
  GPUSIM_FLOAT_2(FMAX)
  GPUSIM_FLOAT_2(FMIN)
  GPUSIM_FLOAT_2(FMAXNM)
  GPUSIM_FLOAT_2(FMINNM)
  GPUSIM_FLOAT_2(FNMUL)
#undef GPUSIM_FLOAT_2
  bool FMADD(uint32_t f, Reg m, Reg a, Reg n, Reg d);
  bool FMSUB(uint32_t f, Reg m, Reg a, Reg n, Reg d);
  bool FNMADD(uint32_t f, Reg m, Reg a, Reg n, Reg d);
  bool FNMSUB(uint32_t f, Reg m, Reg a, Reg n, Reg d);

  // --- float_convert.cpp: from and to general-purpose registers
#define GPUSIM_FLOAT_INT(name) bool name(bool sf, uint32_t f, Reg n, Reg d);
  GPUSIM_FLOAT_INT(FCVTNS)
  GPUSIM_FLOAT_INT(FCVTNU)
  GPUSIM_FLOAT_INT(SCVTF_int)
  GPUSIM_FLOAT_INT(UCVTF_int)
  GPUSIM_FLOAT_INT(FCVTAS)
  GPUSIM_FLOAT_INT(FCVTAU)
  GPUSIM_FLOAT_INT(FMOV_to_gpr)
  GPUSIM_FLOAT_INT(FMOV_from_gpr)
  GPUSIM_FLOAT_INT(FCVTPS)
  GPUSIM_FLOAT_INT(FCVTPU)
  GPUSIM_FLOAT_INT(FCVTMS)
  GPUSIM_FLOAT_INT(FCVTMU)
  GPUSIM_FLOAT_INT(FCVTZS_int)
  GPUSIM_FLOAT_INT(FCVTZU_int)
#undef GPUSIM_FLOAT_INT
  bool SCVTF_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d);
  bool UCVTF_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d);
  bool FCVTZS_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d);
  bool FCVTZU_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d);
  bool FMOV_top_to_gpr(Reg n, Reg d);
  bool FMOV_top_from_gpr(Reg n, Reg d);
  bool FJCVTZS(Reg n, Reg d);

 protected:
  explicit FloatVisitor(BlockBuilder& builder) : b_(builder) {}

  // Operations of two operands, in every format and, vectors, elementwise.
  enum class Fp2 : uint8_t {
    // in FpMisc2's order
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMulX,
    kRecipStep,
    kRsqrtStep,
    kAbsDiff,
    // in FpMinMax's order
    kMin,
    kMax,
    kMinNum,
    kMaxNum,
    // in FpTest's order
    kEq,
    kGe,
    kGt,
    kAbsGe,
    kAbsGt,
  };

  static FpFormat format(uint32_t f) {
    return f == 0 ? FpFormat::kF32 : f == 1 ? FpFormat::kF64 : FpFormat::kF16;
  }
  static int bits(FpFormat f) { return 16 << static_cast<int>(f); }
  static uint64_t ones(FpFormat f) { return ~uint64_t{0} >> (64 - bits(f)); }
  static uint64_t sign_bit(FpFormat f) { return uint64_t{1} << (bits(f) - 1); }
  template <class Kind>
  static uint8_t fp_aux(FpFormat f, Kind kind) {
    return static_cast<uint8_t>(static_cast<int>(f) | static_cast<int>(kind) << 2);
  }
  void set_class(InsnClass c) { b_.set_class(c); }
  void set_arithmetic_class(FpFormat f) {
    set_class(f == FpFormat::kF64 ? InsnClass::kDoubleArithmetic : InsnClass::kFloatArithmetic);
  }
  void set_class_of(Fp2 k, FpFormat f);
  // A scalar result clears the rest of its register.
  void clear_high(Reg d) { b_.konst(v_high(d), 0); }
  bool done(Reg d) {
    clear_high(d);
    return true;
  }
  // d = the low `bits(f)` bits of a.
  void cut(FpFormat f, Slot d, Slot a);
  // A temporary with a's sign changed; bits above the format are meaningless.
  Slot negated(FpFormat f, Slot a);
  // d = a op b on scalars.
  void scalar2(Fp2 k, FpFormat f, Slot d, Slot a, Slot b);
  bool arithmetic2(Fp2 k, uint32_t f, Reg m, Reg n, Reg d);
  void muladd(FpFormat f, Slot d, Slot a, Slot b, Slot c);
  // VFPExpandImm.
  static uint64_t expand_imm(FpFormat f, uint32_t imm8);

  BlockBuilder& b_;

 private:
  bool round(uint32_t f, FpRounding rounding, Reg n, Reg d);
  bool round_n(uint32_t f, FpRounding rounding, uint32_t int_bits, Reg n, Reg d);
  bool compare(uint32_t f, bool signalling, Slot n, Slot m);
  bool compare_if(uint32_t f, bool signalling, Slot n, Slot m, uint32_t cond, uint32_t nzcv);
  bool fused(uint32_t f, bool negate_product, bool negate_addend, Reg m, Reg a, Reg n, Reg d);
  bool to_int(bool sf, uint32_t f, FpRounding rounding, bool is_signed, Reg n, Reg d,
              uint32_t fraction_bits = 0);
  bool from_int(bool sf, uint32_t f, bool is_signed, Reg n, Reg d, uint32_t fraction_bits = 0);
};

}  // namespace gpusim::a64
