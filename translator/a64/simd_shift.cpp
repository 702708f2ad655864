// Advanced SIMD: shifts by an immediate (C4.1.90). immh's top bit gives the element's size; for
// left shifts immh:immb is the size plus the amount, for right shifts twice the size minus it.
#include <bit>

#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {
namespace {

uint32_t log2_bytes(uint32_t j) { return static_cast<uint32_t>(std::bit_width(j)) - 1; }
uint32_t left_amount(uint32_t j, uint32_t l) { return (j << 3 | l) - (8u << log2_bytes(j)); }
uint32_t right_amount(uint32_t j, uint32_t l) { return (16u << log2_bytes(j)) - (j << 3 | l); }

}  // namespace

bool SimdVisitor::shift_right(bool is_signed, bool rounding, bool accumulate, bool q, uint32_t j,
                              uint32_t l, Reg n, Reg d) {
  set_class(accumulate || rounding ? InsnClass::kIntegerArithmetic : InsnClass::kIntegerLogical);
  const uint32_t y = log2_bytes(j), amount = right_amount(j, l);
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot shifted = accumulate ? b_.temp() : v(d, h);
    if (rounding) {
      help1(is_signed ? Helper1::vsrshr : Helper1::vurshr, shifted, v(n, h), y, amount);
    } else {
      b_.emit(is_signed ? MicroOp::vsshr : MicroOp::vushr, shifted, v(n, h), 0, 0, amount, u8(y));
    }
    if (accumulate) op3(MicroOp::vadd, v(d, h), v(d, h), shifted, y);
  }
  return end_vector(q, d);
}
#define X(name, is_signed, rounding, accumulate)                             \
  bool SimdVisitor::name##_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) { \
    return shift_right(is_signed, rounding, accumulate, q, j, l, n, d);      \
  }                                                                          \
  bool SimdVisitor::name##_s(uint32_t j, uint32_t l, Reg n, Reg d) {         \
    return shift_right(is_signed, rounding, accumulate, false, j, l, n, d);  \
  }
GPUSIM_A64_SHIFT_RIGHT(X)
#undef X

bool SimdVisitor::SHL_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h <= q; ++h) {
    b_.vshl(v(d, h), v(n, h), left_amount(j, l), u8(log2_bytes(j)));
  }
  return end_vector(q, d);
}
bool SimdVisitor::SHL_s(uint32_t j, uint32_t l, Reg n, Reg d) { return SHL_v(false, j, l, n, d); }

// SLI and SRI keep the destination's bits where the shift brings none.
bool SimdVisitor::shift_insert(bool left, bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = log2_bytes(j);
  const uint64_t element = ~uint64_t{0} >> (64 - (8u << y));
  const uint32_t amount = left ? left_amount(j, l) : right_amount(j, l);
  const uint64_t brought = left ? element << amount : amount == 64 ? 0 : element >> amount;
  const Slot shifted = b_.temp(), kept = b_.temp();
  for (uint32_t h = 0; h <= q; ++h) {
    b_.emit(left ? MicroOp::vshl : MicroOp::vushr, shifted, v(n, h), 0, 0, amount, u8(y));
    b_.andi64(kept, v(d, h), ~splat(brought, y));
    b_.or64(v(d, h), kept, shifted);
  }
  return end_vector(q, d);
}
bool SimdVisitor::SLI_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_insert(true, q, j, l, n, d);
}
bool SimdVisitor::SLI_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_insert(true, false, j, l, n, d);
}
bool SimdVisitor::SRI_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_insert(false, q, j, l, n, d);
}
bool SimdVisitor::SRI_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_insert(false, false, j, l, n, d);
}

// --- narrowing and widening; immh gives the narrow size

bool SimdVisitor::shift_narrow(bool rounding, bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(rounding ? InsnClass::kIntegerArithmetic : InsnClass::kIntegerLogical);
  const uint32_t y = log2_bytes(j), amount = right_amount(j, l);
  const Slot shifted[2] = {b_.temp(), b_.temp()};
  const Slot half_unit = rounding ? konst(splat(uint64_t{1} << (amount - 1), y + 1)) : kZero;
  for (uint32_t h = 0; h < 2; ++h) {
    Slot value = v(n, h);
    if (rounding) {
      op3(MicroOp::vadd, shifted[h], value, half_unit, y + 1);
      value = shifted[h];
    }
    b_.vushr(shifted[h], value, amount, u8(y + 1));
  }
  op3(MicroOp::vxtn, v(d, q), shifted[0], shifted[1], y);
  return end_vector(q, d);
}
bool SimdVisitor::SHRN_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_narrow(false, q, j, l, n, d);
}
bool SimdVisitor::RSHRN_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_narrow(true, q, j, l, n, d);
}

bool SimdVisitor::shift_long(bool is_signed, bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = log2_bytes(j), amount = left_amount(j, l);
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    if (amount == 0) {
      widen(is_signed, v(d, h), v(n, q), h, y);
    } else {
      const Slot t = b_.temp();
      widen(is_signed, t, v(n, q), h, y);
      b_.vshl(v(d, h), t, amount, u8(y + 1));
    }
  }
  return true;
}
bool SimdVisitor::SSHLL_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_long(true, q, j, l, n, d);
}
bool SimdVisitor::USHLL_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_long(false, q, j, l, n, d);
}

// --- saturating

#define X(name, flags)                                                               \
  bool SimdVisitor::name##_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {         \
    return saturating_narrow(flags, right_amount(j, l), q, log2_bytes(j), n, d);     \
  }                                                                                  \
  bool SimdVisitor::name##_s(uint32_t j, uint32_t l, Reg n, Reg d) {                 \
    return saturating_narrow_scalar(flags, right_amount(j, l), log2_bytes(j), n, d); \
  }
GPUSIM_A64_SHIFT_NARROW(X)
#undef X

bool SimdVisitor::shift_saturating(FpHelper2 h, bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const uint32_t y = log2_bytes(j);
  const Slot amount = konst(splat(left_amount(j, l), y));
  for (uint32_t half = 0; half <= q; ++half) fhelp2(h, v(d, half), v(n, half), amount, y);
  return end_vector(q, d);
}
bool SimdVisitor::shift_saturating_scalar(FpHelper2 h, uint32_t j, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const uint32_t y = log2_bytes(j);
  const Slot a = low_element(v_low(n), y), amount = konst(left_amount(j, l));
  fhelp2(h, v_low(d), a, amount, y);
  return done(d);
}
bool SimdVisitor::SQSHL_imm_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_saturating(FpHelper2::sqshl, q, j, l, n, d);
}
bool SimdVisitor::SQSHL_imm_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_saturating_scalar(FpHelper2::sqshl, j, l, n, d);
}
bool SimdVisitor::UQSHL_imm_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_saturating(FpHelper2::uqshl, q, j, l, n, d);
}
bool SimdVisitor::UQSHL_imm_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return shift_saturating_scalar(FpHelper2::uqshl, j, l, n, d);
}
bool SimdVisitor::SQSHLU_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return saturating_1(FpHelper1::sqshlu, left_amount(j, l), q, log2_bytes(j), n, d);
}
bool SimdVisitor::SQSHLU_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return saturating_1_scalar(FpHelper1::sqshlu, left_amount(j, l), log2_bytes(j), n, d);
}

}  // namespace gpusim::a64
