// Advanced SIMD: saturating rounding doubling multiply-accumulate (FEAT_RDM), dot products of bytes
// (FEAT_DotProd) and their matrix products (FEAT_I8MM), C4.1.90.
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

#define GPUSIM_ELEMENT_ARGS uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d

// --- SQRDMLAH, SQRDMLSH

void SimdVisitor::rounding_doubling(uint32_t subtract, Slot d, Slot a, Slot b, Slot c, uint32_t y) {
  b_.fhelp3(d, a, b, c, u8(y), helper_number(FpHelper3::sqrdmlah) | uint64_t{subtract} << 16);
}
// The other elements of scalar forms are zeros, which stay zeros without saturation.
#define X(name, subtract)                                                                \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {                  \
    set_class(InsnClass::kIntegerArithmetic);                                            \
    for (uint32_t h = 0; h <= q; ++h) {                                                  \
      rounding_doubling(subtract, v(d, h), v(n, h), v(m, h), v(d, h), y);                \
    }                                                                                    \
    return end_vector(q, d);                                                             \
  }                                                                                      \
  bool SimdVisitor::name##_elt_v(bool q, uint32_t y, GPUSIM_ELEMENT_ARGS) {              \
    set_class(InsnClass::kIntegerArithmetic);                                            \
    const Slot e = splat_of(y, L, M, m, H);                                              \
    for (uint32_t h = 0; h <= q; ++h) {                                                  \
      rounding_doubling(subtract, v(d, h), v(n, h), e, v(d, h), y);                      \
    }                                                                                    \
    return end_vector(q, d);                                                             \
  }                                                                                      \
  bool SimdVisitor::name##_s(uint32_t y, Reg m, Reg n, Reg d) {                          \
    set_class(InsnClass::kIntegerArithmetic);                                            \
    const Slot a = low_element(v_low(n), y), b = v_low(m), c = low_element(v_low(d), y); \
    rounding_doubling(subtract, v_low(d), a, b, c, y);                                   \
    return done(d);                                                                      \
  }                                                                                      \
  bool SimdVisitor::name##_elt_s(uint32_t y, GPUSIM_ELEMENT_ARGS) {                      \
    set_class(InsnClass::kIntegerArithmetic);                                            \
    const Slot e = splat_of(y, L, M, m, H);                                              \
    const Slot a = low_element(v_low(n), y), c = low_element(v_low(d), y);               \
    rounding_doubling(subtract, v_low(d), a, e, c, y);                                   \
    return done(d);                                                                      \
  }
GPUSIM_A64_ROUNDING_DOUBLING(X)
#undef X

// --- dot products

// Products of even and of odd bytes have 16 bits, and are signed if an operand is.
void SimdVisitor::dot(const DotTemps& t, bool n_signed, bool m_signed, Slot n, Slot m) {
  const auto right = [](bool is_signed) { return is_signed ? MicroOp::vsshr : MicroOp::vushr; };
  const MicroOp right_n = right(n_signed), right_m = right(m_signed);
  b_.vshl(t.a, n, 8, 1);
  b_.emit(right_n, t.a, t.a, 0, 0, 8, 1);
  b_.vshl(t.b, m, 8, 1);
  b_.emit(right_m, t.b, t.b, 0, 0, 8, 1);
  op3(MicroOp::vmul, t.even, t.a, t.b, 1);
  b_.emit(right_n, t.a, n, 0, 0, 8, 1);
  b_.emit(right_m, t.b, m, 0, 0, 8, 1);
  op3(MicroOp::vmul, t.odd, t.a, t.b, 1);
  const MicroOp right_product = right(n_signed || m_signed);
  const auto widen_upper = [&](Slot d, Slot a) { b_.emit(right_product, d, a, 0, 0, 16, 2); };
  widen_upper(t.a, t.even);
  widen_upper(t.b, t.odd);
  op3(MicroOp::vadd, t.sum, t.a, t.b, 2);
  for (const Slot product : {t.even, t.odd}) {
    b_.vshl(t.a, product, 16, 2);
    widen_upper(t.a, t.a);
    op3(MicroOp::vadd, t.sum, t.sum, t.a, 2);
  }
}
bool SimdVisitor::dot_add(bool n_signed, bool m_signed, bool q, Slot m_low, Slot m_high, Reg n,
                          Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const DotTemps t = dot_temps();
  for (uint32_t h = 0; h <= q; ++h) {
    dot(t, n_signed, m_signed, v(n, h), h ? m_high : m_low);
    op3(MicroOp::vadd, v(d, h), v(d, h), t.sum, 2);
  }
  return end_vector(q, d);
}
#define X(name, n_signed, m_signed)                                   \
  bool SimdVisitor::name##_v(bool q, Reg m, Reg n, Reg d) {           \
    return dot_add(n_signed, m_signed, q, v_low(m), v_high(m), n, d); \
  }                                                                   \
  bool SimdVisitor::name##_elt_v(bool q, GPUSIM_ELEMENT_ARGS) {       \
    const Slot e = splat_of(2, L, M, m, H);                           \
    return dot_add(n_signed, m_signed, q, e, e, n, d);                \
  }
GPUSIM_A64_DOT(X)
#undef X
bool SimdVisitor::SUDOT_elt_v(bool q, GPUSIM_ELEMENT_ARGS) {
  const Slot e = splat_of(2, L, M, m, H);
  return dot_add(true, false, q, e, e, n, d);
}

// --- products of matrices: a row of eight bytes is a half of a register, and so is a row of two
// results

bool SimdVisitor::matrix_add(bool n_signed, bool m_signed, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const DotTemps t = dot_temps();
  const Slot column = b_.temp(), results[2] = {b_.temp(), b_.temp()};
  for (uint32_t h = 0; h < 2; ++h) {
    dot(t, n_signed, m_signed, v(n, h), v_low(m));
    b_.mov(column, t.sum);
    dot(t, n_signed, m_signed, v(n, h), v_high(m));
    op3(MicroOp::vaddp, column, column, t.sum, 2);
    op3(MicroOp::vadd, results[h], v(d, h), column, 2);
  }
  set_both(d, results[0], results[1]);
  return true;
}
#define X(name, n_signed, m_signed)                 \
  bool SimdVisitor::name##_v(Reg m, Reg n, Reg d) { \
    return matrix_add(n_signed, m_signed, m, n, d); \
  }
GPUSIM_A64_MATRIX(X)
#undef X
#undef GPUSIM_ELEMENT_ARGS

}  // namespace gpusim::a64
