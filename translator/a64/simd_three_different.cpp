// Advanced SIMD: three registers of different types (C4.1.90). Their Q chooses the upper half of
// the narrow operands (the "2" forms), or of the narrow result.
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

void SimdVisitor::widen(bool is_signed, Slot d, Slot a, uint32_t half, uint32_t y) {
  b_.emit(is_signed ? MicroOp::vsxtl : MicroOp::vuxtl, d, a, 0, 0, half, u8(y));
}

// m_half is a half of a register or, by element, a temporary.
bool SimdVisitor::long_op(MicroOp op, bool is_signed, bool q, uint32_t y, Slot m_half, Reg n,
                          Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = b_.temp(), b = b_.temp();
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    widen(is_signed, a, v(n, q), h, y);
    widen(is_signed, b, m_half, h, y);
    op3(op, v(d, h), a, b, y + 1);
  }
  return true;
}
#define X(name, op, is_signed)                                          \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    return long_op(MicroOp::op, is_signed, q, y, v(m, q), n, d);        \
  }
GPUSIM_A64_LONG(X)
#undef X

bool SimdVisitor::long_accumulate(MicroOp op, bool is_signed, bool q, uint32_t y, Slot m_half,
                                  Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = b_.temp(), b = b_.temp();
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    widen(is_signed, a, v(n, q), h, y);
    widen(is_signed, b, m_half, h, y);
    b_.emit(op, v(d, h), a, b, v(d, h), 0, u8(y + 1));
  }
  return true;
}
#define X(name, op, is_signed)                                           \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {  \
    return long_accumulate(MicroOp::op, is_signed, q, y, v(m, q), n, d); \
  }
GPUSIM_A64_LONG_ACCUMULATE(X)
#undef X

bool SimdVisitor::wide_op(MicroOp op, bool is_signed, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot b = b_.temp();
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    widen(is_signed, b, v(m, q), h, y);
    op3(op, v(d, h), v(n, h), b, y + 1);
  }
  return true;
}
#define X(name, op, is_signed)                                          \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    return wide_op(MicroOp::op, is_signed, q, y, m, n, d);              \
  }
GPUSIM_A64_WIDE(X)
#undef X

bool SimdVisitor::narrow_high(MicroOp op, bool rounding, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot sum[2] = {b_.temp(), b_.temp()};
  const Slot half_unit = rounding ? konst(splat(uint64_t{1} << ((8 << y) - 1), y + 1)) : kZero;
  for (uint32_t h = 0; h < 2; ++h) {
    op3(op, sum[h], v(n, h), v(m, h), y + 1);
    if (rounding) op3(MicroOp::vadd, sum[h], sum[h], half_unit, y + 1);
  }
  op3(MicroOp::vuzp2, v(d, q), sum[0], sum[1], y);
  return end_vector(q, d);
}
#define X(name, op, rounding)                                           \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { \
    return narrow_high(MicroOp::op, rounding, q, y, m, n, d);           \
  }
GPUSIM_A64_NARROW_HIGH(X)
#undef X

bool SimdVisitor::long_difference(bool is_signed, bool accumulate, bool q, uint32_t y, Reg m, Reg n,
                                  Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = b_.temp(), b = b_.temp(), result = b_.temp();
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    widen(is_signed, a, v(n, q), h, y);
    widen(is_signed, b, v(m, q), h, y);
    absolute_difference(is_signed, accumulate ? result : v(d, h), a, b, y + 1);
    if (accumulate) op3(MicroOp::vadd, v(d, h), v(d, h), result, y + 1);
  }
  return true;
}
bool SimdVisitor::SABDL_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return long_difference(true, false, q, y, m, n, d);
}
bool SimdVisitor::UABDL_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return long_difference(false, false, q, y, m, n, d);
}
bool SimdVisitor::SABAL_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return long_difference(true, true, q, y, m, n, d);
}
bool SimdVisitor::UABAL_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return long_difference(false, true, q, y, m, n, d);
}

bool SimdVisitor::PMULL_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot a = v(n, q), b = v(m, q);
  if (y == 3) {
    const Slot low = b_.temp();
    help2(Helper2::pmull_low, low, a, b, y);
    help2(Helper2::pmull_high, v_high(d), a, b, y);
    b_.mov(v_low(d), low);
    return true;
  }
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    help2(Helper2::vpmull, v(d, h), a, b, y, h);
  }
  return true;
}

// --- saturating, doubling

void SimdVisitor::doubling_long(Accumulate a, Slot d, Slot n, Slot m, uint32_t half, uint32_t y) {
  const Slot product = a == Accumulate::kNone ? d : b_.temp();
  fhelp2(FpHelper2::sqdmull, product, n, m, y, half);
  if (a != Accumulate::kNone) {
    fhelp2(a == Accumulate::kAdd ? FpHelper2::sqadd : FpHelper2::sqsub, d, d, product, y + 1);
  }
}
bool SimdVisitor::doubling_long_vector(Accumulate a, bool q, uint32_t y, Slot m_half, Reg n,
                                       Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    doubling_long(a, v(d, h), v(n, q), m_half, h, y);
  }
  return true;
}
// m_element has zeros above its low element.
bool SimdVisitor::doubling_long_scalar(Accumulate a, uint32_t y, Slot m_element, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot x = low_element(v_low(n), y);
  const Slot sum = b_.temp();
  if (a != Accumulate::kNone) cut(y == 1 ? FpFormat::kF32 : FpFormat::kF64, sum, v_low(d));
  doubling_long(a, sum, x, m_element, 0, y);
  b_.mov(v_low(d), sum);
  return done(d);
}
#define X(name, accumulate)                                                     \
  bool SimdVisitor::name##_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {         \
    return doubling_long_vector(accumulate, q, y, v(m, q), n, d);               \
  }                                                                             \
  bool SimdVisitor::name##_s(uint32_t y, Reg m, Reg n, Reg d) {                 \
    return doubling_long_scalar(accumulate, y, low_element(v_low(m), y), n, d); \
  }
GPUSIM_A64_DOUBLING_LONG(X)
#undef X

}  // namespace gpusim::a64
