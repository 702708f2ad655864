// IEEE 754 binary formats: the state word, unpacking, NaN processing, and the one rounding step that
// all operations share. Names in comments are those of the Arm ARM (shared/functions/float).
//
// Values travel zero-extended in uint64_t.
#pragma once

#include <cstdint>

#include "device_sim/uir/softfloat/bits.h"

namespace gpusim::softfloat {

// --- the state word: sticky flags in bits 31:0, how to compute in bits 63:32. Arm's FPSR and FPCR
// are the two halves, each bit in its architectural position. The policies take bits that no FPCR
// here keeps: a guest ISA sets its own once and for all, as an initial value, and maps its control
// register to the rest.

inline constexpr uint64_t kFpsrIoc = 1u << 0;  ///< invalid operation
inline constexpr uint64_t kFpsrDzc = 1u << 1;  ///< division by zero
inline constexpr uint64_t kFpsrOfc = 1u << 2;  ///< overflow
inline constexpr uint64_t kFpsrUfc = 1u << 3;  ///< underflow
inline constexpr uint64_t kFpsrIxc = 1u << 4;  ///< inexact
inline constexpr uint64_t kFpsrIdc = 1u << 7;  ///< input denormal
inline constexpr uint64_t kFpsrQc = 1u << 27;  ///< saturation (integer vector instructions)
/// Policy: every NaN result is the default one; FPCR.DN says the same.
inline constexpr uint64_t kFpCanonicalNan = uint64_t{1} << (32 + 3);
/// Policy: a result is tiny if it is so after rounding, as if the exponent had no lower bound.
inline constexpr uint64_t kFpTinyAfterRounding = uint64_t{1} << (32 + 4);
/// Policy: NaNs convert to the largest integer, not to zero.
inline constexpr uint64_t kFpNanToLargest = uint64_t{1} << (32 + 5);
/// Policy: every NaN result of singles and halves is the positive one with all bits set; doubles
/// keep payloads, and what an invalid operation of theirs gives is negative. So do NVIDIA's units.
inline constexpr uint64_t kFpFullNan = uint64_t{1} << (32 + 6);
/// State words below it round to nearest even and flush nothing, whatever their policies.
inline constexpr uint64_t kFpFirstMode = uint64_t{1} << (32 + 7);
/// Ties go away from zero, whatever the rounding mode says.
inline constexpr uint64_t kFpTiesAway = uint64_t{1} << (32 + 21);
inline constexpr uint64_t kFpcrFz16 = uint64_t{1} << (32 + 19);
inline constexpr int kFpcrRmodeShift = 32 + 22;
inline constexpr uint64_t kFpcrFz = uint64_t{1} << (32 + 24);
inline constexpr uint64_t kFpcrDn = uint64_t{1} << (32 + 25);
inline constexpr uint64_t kFpcrAhp = uint64_t{1} << (32 + 26);

/// Rounds to nearest even, flushes nothing.
GPUSIM_HD constexpr bool is_default_mode(uint64_t fpst) { return fpst < kFpFirstMode; }

/// The first four are FPCR.RMode's encodings; the others are named by instructions.
enum class Rounding : int { kTieEven, kPosInf, kNegInf, kZero, kTieAway, kOdd };

GPUSIM_HD constexpr Rounding rounding_mode(uint64_t fpst) {
  if ((fpst & kFpTiesAway) != 0) return Rounding::kTieAway;
  return static_cast<Rounding>((fpst >> kFpcrRmodeShift) & 3);
}

// --- formats

template <int kTotalBits, int kFractionBits>
struct Format {
  static constexpr int kBits = kTotalBits;
  static constexpr int kFracBits = kFractionBits;
  static constexpr int kExpBits = kTotalBits - 1 - kFractionBits;
  static constexpr int kBias = (1 << (kExpBits - 1)) - 1;
  static constexpr int kMinExp = 1 - kBias;             ///< of the smallest normal number
  static constexpr int kExpOnes = (1 << kExpBits) - 1;  ///< exponent field of inf and NaN
  static constexpr uint64_t kSign = uint64_t{1} << (kTotalBits - 1);
  static constexpr uint64_t kFracMask = (uint64_t{1} << kFractionBits) - 1;
  static constexpr uint64_t kQuietBit = uint64_t{1} << (kFractionBits - 1);
  static constexpr uint64_t kInf = static_cast<uint64_t>(kExpOnes) << kFractionBits;
  static constexpr uint64_t kMaxNormal = kInf - 1;
  static constexpr uint64_t kDefaultNan = kInf | kQuietBit;
  static constexpr uint64_t kTwo = static_cast<uint64_t>(kBias + 1) << kFractionBits;
  static constexpr uint64_t kOnePointFive =
      (static_cast<uint64_t>(kBias) << kFractionBits) | kQuietBit;
};
using F16 = Format<16, 10>;
using F32 = Format<32, 23>;
using F64 = Format<64, 52>;

/// Whether every NaN result of the format is default_nan().
template <class F>
GPUSIM_HD constexpr bool has_canonical_nan(uint64_t fpst) {
  constexpr uint64_t kFull = F::kBits < 64 ? kFpFullNan : 0;
  return (fpst & (kFpcrDn | kFpCanonicalNan | kFull)) != 0;
}
template <class F>
GPUSIM_HD constexpr uint64_t default_nan(uint64_t fpst) {
  constexpr uint64_t kFull = F::kBits < 64 ? F::kInf | F::kFracMask : F::kSign | F::kDefaultNan;
  return (fpst & kFpFullNan) != 0 ? kFull : F::kDefaultNan;
}

/// x or -x: an operand's sign bit, NaNs included (FPNeg, FPAbs).
template <class F>
GPUSIM_HD constexpr uint64_t fp_neg(uint64_t a) {
  return a ^ F::kSign;
}
template <class F>
GPUSIM_HD constexpr uint64_t fp_abs(uint64_t a) {
  return a & ~F::kSign;
}

template <class F>
GPUSIM_HD constexpr uint64_t with_sign(bool sign, uint64_t magnitude) {
  return sign ? magnitude | F::kSign : magnitude;
}

// --- unpacking

enum class FpClass : int { kZero, kFinite, kInfinity, kQuietNan, kSignallingNan };

/// A finite value is (-1)^sign * sig * 2^(exp - 63) with bit 63 of sig set, subnormals included.
struct Unpacked {
  FpClass type;
  bool sign;
  int exp;
  uint64_t sig;
  uint64_t bits;  ///< the operand, for NaN propagation

  GPUSIM_HD constexpr bool is_zero() const { return type == FpClass::kZero; }
  GPUSIM_HD constexpr bool is_finite() const { return type <= FpClass::kFinite; }
  GPUSIM_HD constexpr bool is_inf() const { return type == FpClass::kInfinity; }
  GPUSIM_HD constexpr bool is_nan() const { return type >= FpClass::kQuietNan; }
  GPUSIM_HD constexpr bool is_snan() const { return type == FpClass::kSignallingNan; }
};

template <class F>
GPUSIM_HD constexpr bool flushes_to_zero(uint64_t fpst) {
  return (fpst & (F::kBits == 16 ? kFpcrFz16 : kFpcrFz)) != 0;
}

/// FPUnpackBase. `alt_half`: no infinities and NaNs, one more binade instead.
template <class F>
GPUSIM_HD constexpr Unpacked unpack_base(uint64_t bits, bool flush, bool alt_half, uint64_t& fpst) {
  const uint64_t frac = bits & F::kFracMask;
  const int field = static_cast<int>((bits >> F::kFracBits) & static_cast<uint64_t>(F::kExpOnes));
  Unpacked r{FpClass::kFinite, (bits & F::kSign) != 0, 0, 0, bits};
  if (field == 0) {
    if (frac == 0 || flush) {
      // Half precision flushes silently.
      if (frac != 0 && F::kBits != 16) fpst |= kFpsrIdc;
      r.type = FpClass::kZero;
      return r;
    }
    r.exp = F::kMinExp + 63 - F::kFracBits;
    r.sig = normalize(frac, r.exp);
  } else if (field == F::kExpOnes && !alt_half) {
    r.type = frac == 0                    ? FpClass::kInfinity
             : (frac & F::kQuietBit) != 0 ? FpClass::kQuietNan
                                          : FpClass::kSignallingNan;
  } else {
    r.exp = field - F::kBias;
    r.sig = (frac | (F::kFracMask + 1)) << (63 - F::kFracBits);
  }
  return r;
}

/// FPUnpack: operands of everything but format conversions.
template <class F>
GPUSIM_HD constexpr Unpacked unpack(uint64_t bits, uint64_t& fpst) {
  return unpack_base<F>(bits, flushes_to_zero<F>(fpst), false, fpst);
}

// --- NaNs

/// FPProcessNaN: what an operation makes of its NaN operand.
template <class F>
GPUSIM_HD constexpr uint64_t process_nan(const Unpacked& a, uint64_t& fpst) {
  if (a.is_snan()) fpst |= kFpsrIoc;
  return has_canonical_nan<F>(fpst) ? default_nan<F>(fpst) : a.bits | F::kQuietBit;
}

/// FPProcessNaNs: the first signalling NaN wins, then the first quiet one. False if there is none.
template <class F>
GPUSIM_HD constexpr bool process_nans(const Unpacked& a, const Unpacked& b, uint64_t& result,
                                      uint64_t& fpst) {
  if (!a.is_nan() && !b.is_nan()) return false;
  const bool take_a = a.is_snan() || (a.is_nan() && !b.is_snan());
  result = process_nan<F>(take_a ? a : b, fpst);
  return true;
}
/// FPProcessNaNs3.
template <class F>
GPUSIM_HD constexpr bool process_nans(const Unpacked& a, const Unpacked& b, const Unpacked& c,
                                      uint64_t& result, uint64_t& fpst) {
  if (!a.is_nan() && !b.is_nan() && !c.is_nan()) return false;
  const Unpacked& ab = a.is_snan() || (a.is_nan() && !b.is_snan()) ? a : b;
  const bool take_ab = ab.is_snan() || (ab.is_nan() && !c.is_snan());
  result = process_nan<F>(take_ab ? ab : c, fpst);
  return true;
}

template <class F>
GPUSIM_HD constexpr uint64_t invalid_operation(uint64_t& fpst) {
  fpst |= kFpsrIoc;
  return default_nan<F>(fpst);
}

// --- rounding

/// Whether a magnitude goes up to the next one. `rest` is what gets cut off, `half` half a unit.
GPUSIM_HD constexpr bool rounds_up(Rounding mode, bool sign, bool odd, uint64_t rest,
                                   uint64_t half) {
  switch (mode) {
    case Rounding::kTieEven:
      return rest > half || (rest == half && odd);
    case Rounding::kTieAway:
      return rest >= half;
    case Rounding::kPosInf:
      return rest != 0 && !sign;
    case Rounding::kNegInf:
      return rest != 0 && sign;
    case Rounding::kZero:
    case Rounding::kOdd:
      break;
  }
  return false;
}

/// FPRoundBase: packs sig * 2^(exp - 63), bit 63 of sig set, bit 0 sticky. Flushing to zero happens
/// before rounding and raises UFC alone.
template <class F>
GPUSIM_HD constexpr uint64_t round_pack_base(bool sign, int exp, uint64_t sig, Rounding mode,
                                             bool flush, bool alt_half, uint64_t& fpst) {
  constexpr int kCut = 63 - F::kFracBits;
  constexpr uint64_t kHalf = uint64_t{1} << (kCut - 1);
  int field = exp + F::kBias;
  bool tiny = field <= 0;
  if (tiny) {
    if (flush) {
      fpst |= kFpsrUfc;
      return with_sign<F>(sign, 0);
    }
    // Rounded to full precision, a fraction of all ones may reach the smallest normal number.
    if (field == 0 && (fpst & kFpTinyAfterRounding) != 0)
      tiny = (sig >> kCut) != (F::kFracMask << 1 | 1) ||
             !rounds_up(mode, sign, true, sig & (2 * kHalf - 1), kHalf);
    sig = shift_right_jam(sig, 1 - field);
    field = 0;
  }
  const uint64_t rest = sig & (2 * kHalf - 1);
  uint64_t mantissa = sig >> kCut;
  if (rest != 0 && tiny) fpst |= kFpsrUfc;
  if (rounds_up(mode, sign, (mantissa & 1) != 0, rest, kHalf)) ++mantissa;
  if (rest != 0 && mode == Rounding::kOdd) mantissa |= 1;

  // The mantissa's leading one counts in the exponent field, so that a carry out of the fraction
  // steps the exponent by itself. Clamped: huge exponents overflow in any case.
  const int top = F::kExpOnes + (alt_half ? 1 : 0);
  const int base = field == 0 ? 0 : (field > top ? top : field) - 1;
  const uint64_t packed = (static_cast<uint64_t>(base) << F::kFracBits) + mantissa;
  if ((packed >> F::kFracBits) >= static_cast<uint64_t>(top)) {
    if (alt_half) {
      fpst |= kFpsrIoc;
      return with_sign<F>(sign, F::kSign - 1);
    }
    fpst |= kFpsrOfc | kFpsrIxc;
    const bool to_inf = mode == Rounding::kTieEven || mode == Rounding::kTieAway ||
                        (mode == Rounding::kPosInf && !sign) || (mode == Rounding::kNegInf && sign);
    return with_sign<F>(sign, to_inf ? F::kInf : F::kMaxNormal);
  }
  if (rest != 0) fpst |= kFpsrIxc;
  return with_sign<F>(sign, packed);
}

/// FPRound with the state's rounding mode.
template <class F>
GPUSIM_HD constexpr uint64_t round_pack(bool sign, int exp, uint64_t sig, uint64_t& fpst) {
  return round_pack_base<F>(sign, exp, sig, rounding_mode(fpst), flushes_to_zero<F>(fpst), false,
                            fpst);
}

/// The zero that an exact cancellation gives.
template <class F>
GPUSIM_HD constexpr uint64_t cancelled_zero(uint64_t fpst) {
  return with_sign<F>(rounding_mode(fpst) == Rounding::kNegInf, 0);
}

}  // namespace gpusim::softfloat
