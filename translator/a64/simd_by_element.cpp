// Advanced SIMD: vector by element (C4.1.90). The element is copied to all places of a temporary;
// then the operation is the ordinary one.
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

SimdVisitor::Element SimdVisitor::element_of(uint32_t y, uint32_t L, uint32_t M, uint32_t m,
                                             uint32_t H) {
  if (y == 1) return {m, H << 2 | L << 1 | M};  // halfwords: only 16 registers
  if (y == 2) return {M << 4 | m, H << 1 | L};
  return {M << 4 | m, H};
}

Slot SimdVisitor::splat_element(uint32_t r, uint32_t index, uint32_t y) {
  const Slot t = b_.temp();
  const Slot from = v(r, index >> (3 - y));
  if (y == 3) {
    b_.mov(t, from);
  } else {
    b_.vdup(t, from, index & ((8u >> y) - 1), u8(y));
  }
  return t;
}

#define GPUSIM_ELEMENT_ARGS uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d

#define X(name, op, is_signed)                                                           \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {              \
    return long_accumulate(MicroOp::op, is_signed, q, y, splat_of(y, L, M, m, H), n, d); \
  }
GPUSIM_A64_LONG_ACCUMULATE(X)
#undef X
#define X(name, is_signed)                                                         \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {        \
    return long_op(MicroOp::vmul, is_signed, q, y, splat_of(y, L, M, m, H), n, d); \
  }
X(SMULL, true)
X(UMULL, false)
#undef X
#define X(name, accumulate)                                                                    \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {                    \
    return doubling_long_vector(accumulate, q, y, splat_of(y, L, M, m, H), n, d);              \
  }                                                                                            \
  bool SimdVisitor::name##_elt_s(uint32_t y, GPUSIM_ELEMENT_ARGS) {                            \
    return doubling_long_scalar(accumulate, y, low_element(splat_of(y, L, M, m, H), y), n, d); \
  }
GPUSIM_A64_DOUBLING_LONG(X)
#undef X

bool SimdVisitor::MUL_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot e = splat_of(y, L, M, m, H);
  for (uint32_t h = 0; h <= q; ++h) op3(MicroOp::vmul, v(d, h), v(n, h), e, y);
  return end_vector(q, d);
}
bool SimdVisitor::MLA_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot e = splat_of(y, L, M, m, H);
  for (uint32_t h = 0; h <= q; ++h) b_.vmla(v(d, h), v(n, h), e, v(d, h), 0, u8(y));
  return end_vector(q, d);
}
bool SimdVisitor::MLS_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot e = splat_of(y, L, M, m, H);
  for (uint32_t h = 0; h <= q; ++h) b_.vmls(v(d, h), v(n, h), e, v(d, h), 0, u8(y));
  return end_vector(q, d);
}

#define X(name, rounding)                                                          \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {        \
    set_class(InsnClass::kIntegerArithmetic);                                      \
    const Slot e = splat_of(y, L, M, m, H);                                        \
    for (uint32_t h = 0; h <= q; ++h) {                                            \
      fhelp2(FpHelper2::sqdmulh, v(d, h), v(n, h), e, y, rounding);                \
    }                                                                              \
    return end_vector(q, d);                                                       \
  }                                                                                \
  bool SimdVisitor::name##_elt_s(uint32_t y, GPUSIM_ELEMENT_ARGS) {                \
    set_class(InsnClass::kIntegerArithmetic);                                      \
    const Slot a = low_element(v_low(n), y);                                       \
    fhelp2(FpHelper2::sqdmulh, v_low(d), a, splat_of(y, L, M, m, H), y, rounding); \
    return done(d);                                                                \
  }
X(SQDMULH, 0)
X(SQRDMULH, 1)
#undef X

// --- floating point

Slot SimdVisitor::fp_element(FpFormat f, uint32_t L, uint32_t M, uint32_t m, uint32_t H) {
  return splat_of(static_cast<uint32_t>(f) + 1, L, M, m, H);
}

bool SimdVisitor::fp_by_element(FpElement k, FpFormat f, bool q, Slot element, Reg n, Reg d) {
  set_arithmetic_class(f);
  for (uint32_t h = 0; h <= q; ++h) {
    Slot a = v(n, h);
    if (k == FpElement::kMls) {
      a = b_.temp();
      b_.xori64(a, v(n, h), splat(sign_bit(f), static_cast<uint32_t>(f) + 1));
    }
    if (k >= FpElement::kMul) {
      vector2(k == FpElement::kMul ? Fp2::kMul : Fp2::kMulX, f, v(d, h), a, element);
    } else {
      vector_muladd(f, v(d, h), a, element, v(d, h));
    }
  }
  return end_vector(q, d);
}
bool SimdVisitor::fp_by_element_scalar(FpElement k, FpFormat f, Slot element, Reg n, Reg d) {
  set_arithmetic_class(f);
  const Slot a = k == FpElement::kMls ? negated(f, v_low(n)) : v_low(n);
  if (k >= FpElement::kMul) {
    scalar2(k == FpElement::kMul ? Fp2::kMul : Fp2::kMulX, f, v_low(d), a, element);
  } else {
    muladd(f, v_low(d), a, element, v_low(d));
  }
  return done(d);
}
#define X(name, k)                                                                     \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t f, GPUSIM_ELEMENT_ARGS) {            \
    const FpFormat fmt = format(f);                                                    \
    return fp_by_element(FpElement::k, fmt, q, fp_element(fmt, L, M, m, H), n, d);     \
  }                                                                                    \
  bool SimdVisitor::name##_elt_v_h(bool q, GPUSIM_ELEMENT_ARGS) {                      \
    const FpFormat fmt = FpFormat::kF16;                                               \
    return fp_by_element(FpElement::k, fmt, q, fp_element(fmt, L, M, m, H), n, d);     \
  }                                                                                    \
  bool SimdVisitor::name##_elt_s(uint32_t f, GPUSIM_ELEMENT_ARGS) {                    \
    const FpFormat fmt = format(f);                                                    \
    return fp_by_element_scalar(FpElement::k, fmt, fp_element(fmt, L, M, m, H), n, d); \
  }                                                                                    \
  bool SimdVisitor::name##_elt_s_h(GPUSIM_ELEMENT_ARGS) {                              \
    const FpFormat fmt = FpFormat::kF16;                                               \
    return fp_by_element_scalar(FpElement::k, fmt, fp_element(fmt, L, M, m, H), n, d); \
  }
X(FMLA, kMla)
X(FMLS, kMls)
X(FMUL, kMul)
X(FMULX, kMulX)
#undef X
#undef GPUSIM_ELEMENT_ARGS

}  // namespace gpusim::a64
