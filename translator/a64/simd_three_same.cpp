// Advanced SIMD: three registers of the same type, integer (C4.1.90).
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

Slot SimdVisitor::low_element(Slot a, uint32_t y) {
  if (y == 3) return a;
  const Slot t = b_.temp();
  b_.andi64(t, a, ~uint64_t{0} >> (64 - (8 << y)));
  return t;
}

bool SimdVisitor::elementwise(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  for (uint32_t h = 0; h <= q; ++h) op3(op, v(d, h), v(n, h), v(m, h), y);
  return end_vector(q, d);
}
#define X(name, op, klass)                                              \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    set_class(InsnClass::klass);                                        \
    return elementwise(MicroOp::op, q, y, m, n, d);                     \
  }
GPUSIM_A64_ELEMENTWISE(X)
GPUSIM_A64_ELEMENTWISE_SCALAR(X)
#undef X
#define X(name, op, klass)                              \
  bool SimdVisitor::name##_s(Reg m, Reg n, Reg d) {     \
    set_class(InsnClass::klass);                        \
    return elementwise(MicroOp::op, false, 3, m, n, d); \
  }
GPUSIM_A64_ELEMENTWISE_SCALAR(X)
#undef X

bool SimdVisitor::helper_2(Helper2 h, uint64_t imm, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t half = 0; half <= q; ++half) {
    help2(h, v(d, half), v(n, half), v(m, half), y, imm);
  }
  return end_vector(q, d);
}
#define X(name, helper, imm)                                            \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    return helper_2(Helper2::helper, imm, q, y, m, n, d);               \
  }
GPUSIM_A64_HELPER_2(X)
GPUSIM_A64_HELPER_2_SCALAR(X)
#undef X
#define X(name, helper, imm)                                  \
  bool SimdVisitor::name##_s(Reg m, Reg n, Reg d) {           \
    return helper_2(Helper2::helper, imm, false, 3, m, n, d); \
  }
GPUSIM_A64_HELPER_2_SCALAR(X)
#undef X

bool SimdVisitor::saturating_2(FpHelper2 h, uint64_t parameters, bool q, uint32_t y, Reg m, Reg n,
                               Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t half = 0; half <= q; ++half) {
    fhelp2(h, v(d, half), v(n, half), v(m, half), y, parameters);
  }
  return end_vector(q, d);
}
// The other elements are zeros, of which every such operation makes zeros, without saturation.
bool SimdVisitor::saturating_2_scalar(FpHelper2 h, uint64_t parameters, uint32_t y, Reg m, Reg n,
                                      Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = low_element(v_low(n), y), b = low_element(v_low(m), y);
  fhelp2(h, v_low(d), a, b, y, parameters);
  return done(d);
}
#define X(name, helper, parameters)                                        \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {    \
    return saturating_2(FpHelper2::helper, parameters, q, y, m, n, d);     \
  }                                                                        \
  bool SimdVisitor::name##_s(uint32_t y, Reg m, Reg n, Reg d) {            \
    return saturating_2_scalar(FpHelper2::helper, parameters, y, m, n, d); \
  }
GPUSIM_A64_SATURATING_2(X)
#undef X

// --- pairs of adjacent elements

SimdVisitor::SlotPair SimdVisitor::pair_sources(bool q, uint32_t half, Reg m, Reg n) {
  if (!q) return {v_low(n), v_low(m)};
  const Reg r = half ? m : n;
  return {v_low(r), v_high(r)};
}

bool SimdVisitor::pairwise(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerComparison);
  const Slot even = b_.temp(), odd = b_.temp();
  const Slot low = q && d == m ? b_.temp() : v_low(d);  // m is read after the low half is done
  for (uint32_t h = 0; h <= q; ++h) {
    const SlotPair s = pair_sources(q, h, m, n);
    op3(MicroOp::vuzp1, even, s.low, s.high, y);
    op3(MicroOp::vuzp2, odd, s.low, s.high, y);
    op3(op, h ? v_high(d) : low, even, odd, y);
  }
  if (low != v_low(d)) b_.mov(v_low(d), low);
  return end_vector(q, d);
}
#define X(name, op)                                                     \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    return pairwise(MicroOp::op, q, y, m, n, d);                        \
  }
GPUSIM_A64_PAIRWISE(X)
#undef X
bool SimdVisitor::ADDP_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot low = q && d == m ? b_.temp() : v_low(d);
  for (uint32_t h = 0; h <= q; ++h) {
    const SlotPair s = pair_sources(q, h, m, n);
    op3(MicroOp::vaddp, h ? v_high(d) : low, s.low, s.high, y);
  }
  if (low != v_low(d)) b_.mov(v_low(d), low);
  return end_vector(q, d);
}

// --- differences, products

void SimdVisitor::absolute_difference(bool is_signed, Slot d, Slot a, Slot b, uint32_t y) {
  const Slot larger = b_.temp(), smaller = b_.temp();
  op3(is_signed ? MicroOp::vsmax : MicroOp::vumax, larger, a, b, y);
  op3(is_signed ? MicroOp::vsmin : MicroOp::vumin, smaller, a, b, y);
  op3(MicroOp::vsub, d, larger, smaller, y);
}
bool SimdVisitor::difference(bool is_signed, bool accumulate, bool q, uint32_t y, Reg m, Reg n,
                             Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot result = accumulate ? b_.temp() : v(d, h);
    absolute_difference(is_signed, result, v(n, h), v(m, h), y);
    if (accumulate) op3(MicroOp::vadd, v(d, h), v(d, h), result, y);
  }
  return end_vector(q, d);
}
bool SimdVisitor::SABD_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return difference(true, false, q, y, m, n, d);
}
bool SimdVisitor::UABD_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return difference(false, false, q, y, m, n, d);
}
bool SimdVisitor::SABA_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return difference(true, true, q, y, m, n, d);
}
bool SimdVisitor::UABA_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return difference(false, true, q, y, m, n, d);
}

bool SimdVisitor::MLA_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) b_.vmla(v(d, h), v(n, h), v(m, h), v(d, h), 0, u8(y));
  return end_vector(q, d);
}
bool SimdVisitor::MLS_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) b_.vmls(v(d, h), v(n, h), v(m, h), v(d, h), 0, u8(y));
  return end_vector(q, d);
}
bool SimdVisitor::PMUL_v(bool q, Reg m, Reg n, Reg d) {
  return helper_2(Helper2::vpmul, 0, q, 0, m, n, d);
}

// --- logic

bool SimdVisitor::logical(MicroOp op, bool q, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h <= q; ++h) b_.emit(op, v(d, h), v(n, h), v(m, h));
  return end_vector(q, d);
}
bool SimdVisitor::AND_v(bool q, Reg m, Reg n, Reg d) { return logical(MicroOp::and64, q, m, n, d); }
bool SimdVisitor::BIC_v(bool q, Reg m, Reg n, Reg d) { return logical(MicroOp::bic64, q, m, n, d); }
bool SimdVisitor::ORR_v(bool q, Reg m, Reg n, Reg d) {
  if (m != n) return logical(MicroOp::or64, q, m, n, d);
  set_class(InsnClass::kIntegerLogical);  // MOV
  for (uint32_t h = 0; h <= q; ++h) b_.mov(v(d, h), v(n, h));
  return end_vector(q, d);
}
bool SimdVisitor::ORN_v(bool q, Reg m, Reg n, Reg d) { return logical(MicroOp::orn64, q, m, n, d); }
bool SimdVisitor::EOR_v(bool q, Reg m, Reg n, Reg d) { return logical(MicroOp::xor64, q, m, n, d); }
bool SimdVisitor::bit_select(bool q, Reg d, Reg if_set, Reg if_clear, Reg mask) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h <= q; ++h) b_.vbsl(v(d, h), v(if_set, h), v(if_clear, h), v(mask, h));
  return end_vector(q, d);
}
bool SimdVisitor::BSL_v(bool q, Reg m, Reg n, Reg d) { return bit_select(q, d, n, m, d); }
bool SimdVisitor::BIT_v(bool q, Reg m, Reg n, Reg d) { return bit_select(q, d, n, d, m); }
bool SimdVisitor::BIF_v(bool q, Reg m, Reg n, Reg d) { return bit_select(q, d, d, n, m); }

}  // namespace gpusim::a64
