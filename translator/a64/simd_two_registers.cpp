// Advanced SIMD: two registers, integer, and across lanes (C4.1.90).
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

bool SimdVisitor::compare_zero(MicroOp op, bool swap, bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerComparison);
  for (uint32_t h = 0; h <= q; ++h) {
    op3(op, v(d, h), swap ? kZero : v(n, h), swap ? v(n, h) : kZero, y);
  }
  return end_vector(q, d);
}
#define X(name, op, swap)                                             \
  bool SimdVisitor::name##_zero_v(bool q, uint32_t y, Reg n, Reg d) { \
    return compare_zero(MicroOp::op, swap, q, y, n, d);               \
  }                                                                   \
  bool SimdVisitor::name##_zero_s(Reg n, Reg d) {                     \
    return compare_zero(MicroOp::op, swap, false, 3, n, d);           \
  }
GPUSIM_A64_COMPARE_ZERO(X)
#undef X

// --- one helper per half

bool SimdVisitor::helper_1(Helper1 h, uint64_t imm, bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t half = 0; half <= q; ++half) help1(h, v(d, half), v(n, half), y, imm);
  return end_vector(q, d);
}
bool SimdVisitor::REV64_v(bool q, uint32_t y, Reg n, Reg d) {
  return helper_1(Helper1::vrev, 64, q, y, n, d);
}
bool SimdVisitor::REV32_v(bool q, uint32_t y, Reg n, Reg d) {
  return helper_1(Helper1::vrev, 32, q, y, n, d);
}
bool SimdVisitor::REV16_v(bool q, Reg n, Reg d) { return helper_1(Helper1::vrev, 16, q, 0, n, d); }
bool SimdVisitor::CLS_v(bool q, uint32_t y, Reg n, Reg d) {
  return helper_1(Helper1::vcls, 0, q, y, n, d);
}
bool SimdVisitor::CLZ_v(bool q, uint32_t y, Reg n, Reg d) {
  return helper_1(Helper1::vclz, 0, q, y, n, d);
}
bool SimdVisitor::RBIT_v(bool q, Reg n, Reg d) { return helper_1(Helper1::vrbit, 0, q, 0, n, d); }

bool SimdVisitor::CNT_v(bool q, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) b_.vcnt(v(d, h), v(n, h));
  return end_vector(q, d);
}
bool SimdVisitor::NOT_v(bool q, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h <= q; ++h) b_.xori64(v(d, h), v(n, h), ~uint64_t{0});
  return end_vector(q, d);
}
bool SimdVisitor::ABS_v(bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) b_.vabs(v(d, h), v(n, h), 0, u8(y));
  return end_vector(q, d);
}
bool SimdVisitor::NEG_v(bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) b_.vneg(v(d, h), v(n, h), 0, u8(y));
  return end_vector(q, d);
}
bool SimdVisitor::ABS_s(Reg n, Reg d) { return ABS_v(false, 3, n, d); }
bool SimdVisitor::NEG_s(Reg n, Reg d) { return NEG_v(false, 3, n, d); }

// --- saturating

bool SimdVisitor::saturating_1(FpHelper1 h, uint64_t parameters, bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t half = 0; half <= q; ++half) fhelp1(h, v(d, half), v(n, half), y, parameters);
  return end_vector(q, d);
}
bool SimdVisitor::saturating_1_scalar(FpHelper1 h, uint64_t parameters, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = low_element(v_low(n), y);
  fhelp1(h, v_low(d), a, y, parameters);
  return done(d);
}
bool SimdVisitor::SQABS_v(bool q, uint32_t y, Reg n, Reg d) {
  return saturating_1(FpHelper1::sqabs, 0, q, y, n, d);
}
bool SimdVisitor::SQABS_s(uint32_t y, Reg n, Reg d) {
  return saturating_1_scalar(FpHelper1::sqabs, 0, y, n, d);
}
bool SimdVisitor::SQNEG_v(bool q, uint32_t y, Reg n, Reg d) {
  return saturating_1(FpHelper1::sqneg, 0, q, y, n, d);
}
bool SimdVisitor::SQNEG_s(uint32_t y, Reg n, Reg d) {
  return saturating_1_scalar(FpHelper1::sqneg, 0, y, n, d);
}
// The destination is the first operand.
bool SimdVisitor::SUQADD_v(bool q, uint32_t y, Reg n, Reg d) {
  return saturating_2(FpHelper2::suqadd, 0, q, y, n, d, d);
}
bool SimdVisitor::SUQADD_s(uint32_t y, Reg n, Reg d) {
  return saturating_2_scalar(FpHelper2::suqadd, 0, y, n, d, d);
}
bool SimdVisitor::USQADD_v(bool q, uint32_t y, Reg n, Reg d) {
  return saturating_2(FpHelper2::usqadd, 0, q, y, n, d, d);
}
bool SimdVisitor::USQADD_s(uint32_t y, Reg n, Reg d) {
  return saturating_2_scalar(FpHelper2::usqadd, 0, y, n, d, d);
}

bool SimdVisitor::saturating_narrow(uint32_t flags, uint32_t shift, bool q, uint32_t y, Reg n,
                                    Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  fhelp2(FpHelper2::qshrn, v(d, q), v_low(n), v_high(n), y, shift | flags << 8);
  return end_vector(q, d);
}
bool SimdVisitor::saturating_narrow_scalar(uint32_t flags, uint32_t shift, uint32_t y, Reg n,
                                           Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = low_element(v_low(n), y + 1);
  fhelp2(FpHelper2::qshrn, v_low(d), a, kZero, y, shift | flags << 8);
  return done(d);
}
#define X(name, flags)                                           \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg n, Reg d) { \
    return saturating_narrow(flags, 0, q, y, n, d);              \
  }                                                              \
  bool SimdVisitor::name##_s(uint32_t y, Reg n, Reg d) {         \
    return saturating_narrow_scalar(flags, 0, y, n, d);          \
  }
GPUSIM_A64_SATURATING_NARROW(X)
#undef X

// --- narrowing, widening

bool SimdVisitor::XTN_v(bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  op3(MicroOp::vxtn, v(d, q), v_low(n), v_high(n), y);
  return end_vector(q, d);
}
bool SimdVisitor::SHLL_v(bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    widen(false, t, v(n, q), h, y);
    b_.lsli64(v(d, h), t, 8u << y);  // nothing crosses an element's border
  }
  return true;
}

// d = sums of adjacent elements of a, in elements twice as wide.
void SimdVisitor::add_long_pairs(bool is_signed, Slot d, Slot a, uint32_t y) {
  const Slot even = b_.temp(), odd = b_.temp();
  const uint64_t bits = 8u << y;
  const MicroOp right = is_signed ? MicroOp::vsshr : MicroOp::vushr;
  b_.vshl(even, a, bits, u8(y + 1));
  b_.emit(right, even, even, 0, 0, bits, u8(y + 1));
  b_.emit(right, odd, a, 0, 0, bits, u8(y + 1));
  op3(MicroOp::vadd, d, even, odd, y + 1);
}
bool SimdVisitor::long_pairwise(bool is_signed, bool accumulate, bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot sum = accumulate ? b_.temp() : v(d, h);
    add_long_pairs(is_signed, sum, v(n, h), y);
    if (accumulate) op3(MicroOp::vadd, v(d, h), v(d, h), sum, y + 1);
  }
  return end_vector(q, d);
}
bool SimdVisitor::SADDLP_v(bool q, uint32_t y, Reg n, Reg d) {
  return long_pairwise(true, false, q, y, n, d);
}
bool SimdVisitor::UADDLP_v(bool q, uint32_t y, Reg n, Reg d) {
  return long_pairwise(false, false, q, y, n, d);
}
bool SimdVisitor::SADALP_v(bool q, uint32_t y, Reg n, Reg d) {
  return long_pairwise(true, true, q, y, n, d);
}
bool SimdVisitor::UADALP_v(bool q, uint32_t y, Reg n, Reg d) {
  return long_pairwise(false, true, q, y, n, d);
}

// --- across lanes

// The operation is associative and commutative: the halves first, then element i with i + k.
void SimdVisitor::fold(MicroOp op, Slot t, bool q, uint32_t y, Slot low, Slot high) {
  Slot value = low;
  if (q) {
    op3(op, t, low, high, y);
    value = t;
  }
  const Slot upper = b_.temp();
  for (uint64_t bits = 32; bits >= (8u << y); bits /= 2) {
    b_.lsri64(upper, value, bits);
    op3(op, t, value, upper, y);
    value = t;
  }
}
bool SimdVisitor::across(MicroOp op, bool q, uint32_t y, Reg n, Reg d) {
  set_class(op == MicroOp::vadd ? InsnClass::kIntegerArithmetic : InsnClass::kIntegerComparison);
  const Slot t = b_.temp();
  fold(op, t, q, y, v_low(n), v_high(n));
  b_.vumov(v_low(d), t, 0, u8(y));
  return done(d);
}
#define X(name, op)                                              \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg n, Reg d) { \
    return across(MicroOp::op, q, y, n, d);                      \
  }
GPUSIM_A64_ACROSS(X)
#undef X

bool SimdVisitor::across_long(bool is_signed, bool q, uint32_t y, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot low = b_.temp(), high = b_.temp(), t = b_.temp();
  add_long_pairs(is_signed, low, v_low(n), y);
  if (q) add_long_pairs(is_signed, high, v_high(n), y);
  if (y == 2) {  // q is set; two 64-bit sums are left
    b_.add64(v_low(d), low, high);
    return done(d);
  }
  fold(MicroOp::vadd, t, q, y + 1, low, high);
  b_.vumov(v_low(d), t, 0, u8(y + 1));
  return done(d);
}
bool SimdVisitor::SADDLV_v(bool q, uint32_t y, Reg n, Reg d) {
  return across_long(true, q, y, n, d);
}
bool SimdVisitor::UADDLV_v(bool q, uint32_t y, Reg n, Reg d) {
  return across_long(false, q, y, n, d);
}

bool SimdVisitor::ADDP_s(Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  b_.add64(v_low(d), v_low(n), v_high(n));
  return done(d);
}

}  // namespace gpusim::a64
