// FPConvert, FPToFixed, FPToFixedJS, FixedToFP, FPRoundInt, FPRoundIntN (Arm ARM,
// shared/functions/float).
#pragma once

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::softfloat {

// --- between formats

/// FPUnpackCV: AHP counts, FZ16 does not.
template <class F>
GPUSIM_HD constexpr Unpacked unpack_convert(uint64_t bits, uint64_t& fpst) {
  if constexpr (F::kBits == 16) {
    return unpack_base<F>(bits, false, (fpst & kFpcrAhp) != 0, fpst);
  } else {
    return unpack<F>(bits, fpst);
  }
}

/// FPConvert. FCVT passes the FPCR's rounding mode, FCVTXN Rounding::kOdd.
template <class To, class From>
GPUSIM_HD constexpr uint64_t fp_convert(uint64_t op, Rounding mode, uint64_t& fpst) {
  const Unpacked a = unpack_convert<From>(op, fpst);
  const bool alt_half = To::kBits == 16 && (fpst & kFpcrAhp) != 0;
  if (a.is_nan()) {
    if (a.is_snan() || alt_half) fpst |= kFpsrIoc;
    if (alt_half) return with_sign<To>(a.sign, 0);
    if (has_canonical_nan<To>(fpst)) return default_nan<To>(fpst);
    // The payload keeps its most significant bits.
    const uint64_t payload = (a.bits & From::kFracMask) << (63 - From::kFracBits);
    return with_sign<To>(a.sign, To::kDefaultNan | (payload >> (63 - To::kFracBits)));
  }
  if (a.is_inf()) {
    if (!alt_half) return with_sign<To>(a.sign, To::kInf);
    fpst |= kFpsrIoc;
    return with_sign<To>(a.sign, To::kSign - 1);
  }
  if (a.is_zero()) return with_sign<To>(a.sign, 0);
  const bool flush = To::kBits != 16 && flushes_to_zero<To>(fpst);
  return round_pack_base<To>(a.sign, a.exp, a.sig, mode, flush, alt_half, fpst);
}

template <class To, class From>
GPUSIM_HD constexpr uint64_t fp_convert(uint64_t op, uint64_t& fpst) {
  return fp_convert<To, From>(op, rounding_mode(fpst), fpst);
}

// --- to integers

/// A finite magnitude cut at the binary point and rounded.
struct RoundedInt {
  uint64_t magnitude;
  bool inexact;
  bool too_big;  ///< 2^64 or more; the magnitude is then meaningless
};

/// Rounds the nonzero finite |a| * 2^fbits.
GPUSIM_HD constexpr RoundedInt round_to_integer(const Unpacked& a, int fbits, Rounding mode) {
  const int cut = 63 - (a.exp + fbits);  // bits below the binary point
  if (cut < 0) return {0, false, true};
  if (cut == 0) return {a.sig, false, false};
  // rest is the part below the point scaled to 64 bits, half is 2^63.
  const uint64_t whole = cut > 63 ? 0 : a.sig >> cut;
  const uint64_t rest = cut > 64 ? 1 : a.sig << (64 - cut);
  const bool up = rounds_up(mode, a.sign, (whole & 1) != 0, rest, uint64_t{1} << 63);
  return {whole + (up ? 1 : 0), rest != 0, false};
}

/// FPToFixed: to a saturated integer of `int_bits` (16, 32, 64) bits, `fbits` of them fraction;
/// zero-extended.
template <class F>
GPUSIM_HD constexpr uint64_t fp_to_fixed(uint64_t op, int int_bits, int fbits, bool is_unsigned,
                                         Rounding mode, uint64_t& fpst) {
  const uint64_t all_ones = low_mask(int_bits);
  const uint64_t sign_bit = uint64_t{1} << (int_bits - 1);
  const uint64_t positive_limit = is_unsigned ? all_ones : sign_bit - 1;
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) {
    fpst |= kFpsrIoc;
    return (fpst & kFpNanToLargest) != 0 ? positive_limit : 0;
  }
  if (a.is_zero()) return 0;
  RoundedInt r{0, false, true};
  if (!a.is_inf()) r = round_to_integer(a, fbits, mode);

  const uint64_t negative_limit = is_unsigned ? 0 : sign_bit;
  const uint64_t limit = a.sign ? negative_limit : positive_limit;
  if (r.too_big || r.magnitude > limit) {
    fpst |= kFpsrIoc;
    return limit;
  }
  if (r.inexact) fpst |= kFpsrIxc;
  return (a.sign ? 0 - r.magnitude : r.magnitude) & all_ones;
}

/// FPToFixedJS (FJCVTZS): double to int32 modulo 2^32, towards zero. `exact` is PSTATE.Z: the
/// result equals the operand, which -0 does not.
GPUSIM_HD constexpr uint64_t fp_to_int32_js(uint64_t op, bool& exact, uint64_t& fpst) {
  const Unpacked a = unpack<F64>(op, fpst);
  exact = false;
  if (a.is_nan() || a.is_inf()) {
    fpst |= kFpsrIoc;
    return 0;
  }
  if (a.is_zero()) {
    exact = op == 0;  // neither -0 nor a flushed subnormal
    return 0;
  }
  uint64_t magnitude = 0;
  bool inexact = false;
  bool overflow = a.exp > 31;
  if (a.exp <= 63) {
    const RoundedInt r = round_to_integer(a, 0, Rounding::kZero);
    magnitude = r.magnitude;
    inexact = r.inexact;
    overflow = magnitude > (a.sign ? 0x80000000u : 0x7FFFFFFFu);
  } else if (a.exp < 63 + 32) {
    magnitude = a.sig << (a.exp - 63);  // the low 32 bits are what counts
  }
  if (overflow) {
    fpst |= kFpsrIoc;
  } else if (inexact) {
    fpst |= kFpsrIxc;
  } else {
    exact = true;
  }
  return (a.sign ? 0 - magnitude : magnitude) & 0xFFFFFFFF;
}

// --- from integers

/// FixedToFP: the low `int_bits` bits of op, `fbits` of them fraction, rounded by the FPCR.
template <class F>
GPUSIM_HD constexpr uint64_t fixed_to_fp(uint64_t op, int int_bits, int fbits, bool is_unsigned,
                                         uint64_t& fpst) {
  uint64_t magnitude = op & low_mask(int_bits);
  const bool sign = !is_unsigned && (magnitude >> (int_bits - 1)) != 0;
  if (sign) magnitude = (0 - magnitude) & low_mask(int_bits);
  if (magnitude == 0) return 0;
  int exp = 63 - fbits;
  const uint64_t sig = normalize(magnitude, exp);
  return round_pack<F>(sign, exp, sig, fpst);
}

// --- to integral values

/// The floating-point value of an integer that F holds exactly; zero keeps the sign.
template <class F>
GPUSIM_HD constexpr uint64_t pack_integer(bool sign, uint64_t magnitude, uint64_t& fpst) {
  if (magnitude == 0) return with_sign<F>(sign, 0);
  int exp = 63;
  const uint64_t sig = normalize(magnitude, exp);
  return round_pack<F>(sign, exp, sig, fpst);
}

/// FPRoundInt. `exact`: raise IXC when the value changes (FRINTX).
template <class F>
GPUSIM_HD constexpr uint64_t fp_round_int(uint64_t op, Rounding mode, bool exact, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) return process_nan<F>(a, fpst);
  if (a.is_zero()) return with_sign<F>(a.sign, 0);
  if (a.is_inf() || a.exp >= F::kFracBits) return op;  // integral already
  const RoundedInt r = round_to_integer(a, 0, mode);
  if (r.inexact && exact) fpst |= kFpsrIxc;
  return pack_integer<F>(a.sign, r.magnitude, fpst);
}

/// FPRoundIntN (FRINT32X, FRINT32Z, FRINT64X, FRINT64Z): what does not fit a signed integer of
/// `int_bits` bits becomes its most negative one.
template <class F>
GPUSIM_HD constexpr uint64_t fp_round_int_n(uint64_t op, Rounding mode, int int_bits,
                                            uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_zero()) return with_sign<F>(a.sign, 0);
  RoundedInt r{0, false, true};
  if (a.is_finite()) r = round_to_integer(a, 0, mode);
  const uint64_t negative_limit = uint64_t{1} << (int_bits - 1);
  if (r.too_big || r.magnitude > (a.sign ? negative_limit : negative_limit - 1)) {
    fpst |= kFpsrIoc;
    return F::kSign | (static_cast<uint64_t>(F::kBias + int_bits - 1) << F::kFracBits);
  }
  if (r.inexact) fpst |= kFpsrIxc;
  return pack_integer<F>(a.sign, r.magnitude, fpst);
}

}  // namespace gpusim::softfloat
