// Advanced SIMD: floating point with one source: comparison with zero, rounding, conversion,
// estimates, signs (C4.1.90).
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

bool SimdVisitor::fp_compare_zero(Fp2 k, bool swap, FpFormat f, bool q, Reg n, Reg d) {
  set_class_of(k, f);
  for (uint32_t h = 0; h <= q; ++h) {
    vector2(k, f, v(d, h), swap ? kZero : v(n, h), swap ? v(n, h) : kZero);
  }
  return end_vector(q, d);
}
bool SimdVisitor::fp_compare_zero_scalar(Fp2 k, bool swap, FpFormat f, Reg n, Reg d) {
  set_class_of(k, f);
  scalar2(k, f, v_low(d), swap ? kZero : v_low(n), swap ? v_low(n) : kZero);
  return done(d);
}
#define X(name, k, swap)                                               \
  bool SimdVisitor::name##_zero_v(bool q, uint32_t f, Reg n, Reg d) {  \
    return fp_compare_zero(Fp2::k, swap, format(f), q, n, d);          \
  }                                                                    \
  bool SimdVisitor::name##_zero_v_h(bool q, Reg n, Reg d) {            \
    return fp_compare_zero(Fp2::k, swap, FpFormat::kF16, q, n, d);     \
  }                                                                    \
  bool SimdVisitor::name##_zero_s(uint32_t f, Reg n, Reg d) {          \
    return fp_compare_zero_scalar(Fp2::k, swap, format(f), n, d);      \
  }                                                                    \
  bool SimdVisitor::name##_zero_s_h(Reg n, Reg d) {                    \
    return fp_compare_zero_scalar(Fp2::k, swap, FpFormat::kF16, n, d); \
  }
GPUSIM_A64_FP_COMPARE_ZERO(X)
#undef X

// --- rounding

bool SimdVisitor::fp_round(FpRounding r, FpFormat f, bool q, Reg n, Reg d) {
  set_arithmetic_class(f);
  for (uint32_t h = 0; h <= q; ++h) {
    if (f == FpFormat::kF64) {
      b_.fround(v(d, h), v(n, h), fp_aux(f, r));
    } else {
      fhelp1(FpHelper1::each_fround, v(d, h), v(n, h), static_cast<uint32_t>(f), fp_aux(f, r));
    }
  }
  return end_vector(q, d);
}
#define X(name, rounding)                                           \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) {    \
    return fp_round(FpRounding::rounding, format(f), q, n, d);      \
  }                                                                 \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {              \
    return fp_round(FpRounding::rounding, FpFormat::kF16, q, n, d); \
  }
GPUSIM_A64_FP_ROUND(X)
#undef X

bool SimdVisitor::fp_round_n(FpRounding r, uint32_t int_bits, FpFormat f, bool q, Reg n, Reg d) {
  set_arithmetic_class(f);
  for (uint32_t h = 0; h <= q; ++h) {
    fhelp1(FpHelper1::each_fround_n, v(d, h), v(n, h), static_cast<uint32_t>(f),
           fp_aux(f, r) | uint64_t{int_bits} << 8);
  }
  return end_vector(q, d);
}
#define X(name, rounding, int_bits)                                        \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) {           \
    return fp_round_n(FpRounding::rounding, int_bits, format(f), q, n, d); \
  }
GPUSIM_A64_FP_ROUND_N(X)
#undef X

// --- integers of the element's size

bool SimdVisitor::fp_to_int(FpRounding r, bool is_signed, FpFormat f, bool q, Reg n, Reg d,
                            uint32_t fraction_bits) {
  set_arithmetic_class(f);
  const bool is_double = f == FpFormat::kF64;
  const uint8_t aux = f2i_aux(f, r, is_signed, is_double);
  for (uint32_t h = 0; h <= q; ++h) {
    if (is_double) {
      b_.f2i(v(d, h), v(n, h), aux, fraction_bits);
    } else {
      fhelp1(FpHelper1::each_f2i, v(d, h), v(n, h), static_cast<uint32_t>(f),
             aux | uint64_t{fraction_bits} << 8);
    }
  }
  return end_vector(q, d);
}
// Half precision goes to 16 bits, which the scalar micro-op does not know: the helper does, after
// the other elements are cleared.
bool SimdVisitor::fp_to_int_scalar(FpRounding r, bool is_signed, FpFormat f, Reg n, Reg d,
                                   uint32_t fraction_bits) {
  set_arithmetic_class(f);
  const uint8_t aux = f2i_aux(f, r, is_signed, f == FpFormat::kF64);
  if (f == FpFormat::kF16) {
    const Slot t = b_.temp();
    cut(f, t, v_low(n));
    fhelp1(FpHelper1::each_f2i, v_low(d), t, static_cast<uint32_t>(f),
           aux | uint64_t{fraction_bits} << 8);
  } else {
    b_.f2i(v_low(d), v_low(n), aux, fraction_bits);
  }
  return done(d);
}
#define X(name, rounding, is_signed)                                                \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) {                    \
    return fp_to_int(FpRounding::rounding, is_signed, format(f), q, n, d);          \
  }                                                                                 \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {                              \
    return fp_to_int(FpRounding::rounding, is_signed, FpFormat::kF16, q, n, d);     \
  }                                                                                 \
  bool SimdVisitor::name##_s(uint32_t f, Reg n, Reg d) {                            \
    return fp_to_int_scalar(FpRounding::rounding, is_signed, format(f), n, d);      \
  }                                                                                 \
  bool SimdVisitor::name##_s_h(Reg n, Reg d) {                                      \
    return fp_to_int_scalar(FpRounding::rounding, is_signed, FpFormat::kF16, n, d); \
  }
GPUSIM_A64_FP_TO_INT(X)
#undef X

bool SimdVisitor::fp_from_int(bool is_signed, FpFormat f, bool q, Reg n, Reg d,
                              uint32_t fraction_bits) {
  set_arithmetic_class(f);
  const bool is_double = f == FpFormat::kF64;
  const uint8_t aux = i2f_aux(f, is_signed, is_double);
  for (uint32_t h = 0; h <= q; ++h) {
    if (is_double) {
      b_.i2f(v(d, h), v(n, h), aux, fraction_bits);
    } else {
      fhelp1(FpHelper1::each_i2f, v(d, h), v(n, h), static_cast<uint32_t>(f),
             aux | uint64_t{fraction_bits} << 8);
    }
  }
  return end_vector(q, d);
}
bool SimdVisitor::fp_from_int_scalar(bool is_signed, FpFormat f, Reg n, Reg d,
                                     uint32_t fraction_bits) {
  set_arithmetic_class(f);
  const uint8_t aux = i2f_aux(f, is_signed, f == FpFormat::kF64);
  if (f == FpFormat::kF16) {
    const Slot t = b_.temp();
    cut(f, t, v_low(n));
    fhelp1(FpHelper1::each_i2f, v_low(d), t, static_cast<uint32_t>(f),
           aux | uint64_t{fraction_bits} << 8);
  } else {
    b_.i2f(v_low(d), v_low(n), aux, fraction_bits);
  }
  return done(d);
}
#define X(name, is_signed)                                       \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) { \
    return fp_from_int(is_signed, format(f), q, n, d);           \
  }                                                              \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {           \
    return fp_from_int(is_signed, FpFormat::kF16, q, n, d);      \
  }                                                              \
  bool SimdVisitor::name##_s(uint32_t f, Reg n, Reg d) {         \
    return fp_from_int_scalar(is_signed, format(f), n, d);       \
  }                                                              \
  bool SimdVisitor::name##_s_h(Reg n, Reg d) {                   \
    return fp_from_int_scalar(is_signed, FpFormat::kF16, n, d);  \
  }
X(SCVTF_int, true)
X(UCVTF_int, false)
#undef X

// Fixed point: the position of immh's top bit gives the format, the rest twice the element's bits
// minus the fraction's.
namespace {
FpFormat fixed_format(uint32_t j) {
  return j >= 8 ? FpFormat::kF64 : j >= 4 ? FpFormat::kF32 : FpFormat::kF16;
}
uint32_t fixed_fraction(uint32_t j, uint32_t l) {
  return (32u << static_cast<uint32_t>(fixed_format(j))) - (j << 3 | l);
}
}  // namespace
bool SimdVisitor::SCVTF_fix_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_from_int(true, fixed_format(j), q, n, d, fixed_fraction(j, l));
}
bool SimdVisitor::SCVTF_fix_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_from_int_scalar(true, fixed_format(j), n, d, fixed_fraction(j, l));
}
bool SimdVisitor::UCVTF_fix_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_from_int(false, fixed_format(j), q, n, d, fixed_fraction(j, l));
}
bool SimdVisitor::UCVTF_fix_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_from_int_scalar(false, fixed_format(j), n, d, fixed_fraction(j, l));
}
bool SimdVisitor::FCVTZS_fix_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_to_int(FpRounding::kZero, true, fixed_format(j), q, n, d, fixed_fraction(j, l));
}
bool SimdVisitor::FCVTZS_fix_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_to_int_scalar(FpRounding::kZero, true, fixed_format(j), n, d, fixed_fraction(j, l));
}
bool SimdVisitor::FCVTZU_fix_v(bool q, uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_to_int(FpRounding::kZero, false, fixed_format(j), q, n, d, fixed_fraction(j, l));
}
bool SimdVisitor::FCVTZU_fix_s(uint32_t j, uint32_t l, Reg n, Reg d) {
  return fp_to_int_scalar(FpRounding::kZero, false, fixed_format(j), n, d, fixed_fraction(j, l));
}

// --- between formats; f is 1 between single and double, 0 between half and single

bool SimdVisitor::FCVTL_v(bool q, uint32_t f, Reg n, Reg d) {
  const FpFormat narrow = f ? FpFormat::kF32 : FpFormat::kF16;
  set_arithmetic_class(f ? FpFormat::kF64 : FpFormat::kF32);
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, q);
    fhelp1(FpHelper1::fwiden, v(d, h), v(n, q), static_cast<uint32_t>(narrow), uint64_t{h} << 8);
  }
  return true;
}
bool SimdVisitor::FCVTN_v(bool q, uint32_t f, Reg n, Reg d) {
  const FpFormat narrow = f ? FpFormat::kF32 : FpFormat::kF16;
  set_arithmetic_class(f ? FpFormat::kF64 : FpFormat::kF32);
  fhelp2(FpHelper2::fnarrow, v(d, q), v_low(n), v_high(n), static_cast<uint32_t>(narrow));
  return end_vector(q, d);
}
bool SimdVisitor::FCVTXN_v(bool q, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF64);
  fhelp2(FpHelper2::fnarrow, v(d, q), v_low(n), v_high(n), static_cast<uint32_t>(FpFormat::kF32),
         uint64_t{1} << 8);
  return end_vector(q, d);
}
bool SimdVisitor::FCVTXN_s(Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF64);
  constexpr uint8_t kToOdd = 16;
  b_.fconvert(v_low(d), v_low(n), fp_aux(FpFormat::kF64, FpFormat::kF32) | kToOdd);
  return done(d);
}

// --- estimates, roots, signs

bool SimdVisitor::fp_misc1(FpMisc1 k, FpFormat f, bool q, Reg n, Reg d) {
  set_class(InsnClass::kSpecialFunction);
  for (uint32_t h = 0; h <= q; ++h) {
    if (k == FpMisc1::kSqrt && f == FpFormat::kF32) {
      const Slot low = b_.temp(), high = b_.temp();
      b_.lsri64(high, v(n, h), 32);
      b_.fsqrt32(low, v(n, h));
      b_.fsqrt32(high, high);
      b_.add_lsl64(v(d, h), low, high, 32);
    } else if (f != FpFormat::kF64) {
      fhelp1(FpHelper1::each_fmisc1, v(d, h), v(n, h), static_cast<uint32_t>(f), fp_aux(f, k));
    } else if (k == FpMisc1::kSqrt) {
      b_.fsqrt64(v(d, h), v(n, h));
    } else {
      b_.fmisc1(v(d, h), v(n, h), fp_aux(f, k));
    }
  }
  return end_vector(q, d);
}
bool SimdVisitor::fp_misc1_scalar(FpMisc1 k, FpFormat f, Reg n, Reg d) {
  set_class(InsnClass::kSpecialFunction);
  b_.fmisc1(v_low(d), v_low(n), fp_aux(f, k));
  return done(d);
}
#define X(name, k)                                               \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) { \
    return fp_misc1(FpMisc1::k, format(f), q, n, d);             \
  }                                                              \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {           \
    return fp_misc1(FpMisc1::k, FpFormat::kF16, q, n, d);        \
  }
GPUSIM_A64_FP_ESTIMATE(X)
X(FSQRT, kSqrt)
#undef X
#define X(name, k)                                            \
  bool SimdVisitor::name##_s(uint32_t f, Reg n, Reg d) {      \
    return fp_misc1_scalar(FpMisc1::k, format(f), n, d);      \
  }                                                           \
  bool SimdVisitor::name##_s_h(Reg n, Reg d) {                \
    return fp_misc1_scalar(FpMisc1::k, FpFormat::kF16, n, d); \
  }
GPUSIM_A64_FP_ESTIMATE(X)
X(FRECPX, kRecipX)
#undef X

bool SimdVisitor::URECPE_v(bool q, Reg n, Reg d) {
  return helper_1(Helper1::vurecpe, 0, q, 2, n, d);
}
bool SimdVisitor::URSQRTE_v(bool q, Reg n, Reg d) {
  return helper_1(Helper1::vursqrte, 0, q, 2, n, d);
}

bool SimdVisitor::fp_sign(MicroOp op, FpFormat f, bool q, Reg n, Reg d) {
  set_arithmetic_class(f);
  const uint64_t signs = splat(sign_bit(f), static_cast<uint32_t>(f) + 1);
  for (uint32_t h = 0; h <= q; ++h) {
    b_.emit(op, v(d, h), v(n, h), 0, 0, op == MicroOp::andi64 ? ~signs : signs);
  }
  return end_vector(q, d);
}
#define X(name, op)                                              \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg n, Reg d) { \
    return fp_sign(MicroOp::op, format(f), q, n, d);             \
  }                                                              \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {           \
    return fp_sign(MicroOp::op, FpFormat::kF16, q, n, d);        \
  }
X(FABS, andi64)
X(FNEG, xori64)
#undef X

}  // namespace gpusim::a64
