// FPAdd, FPSub, FPMul, FPMulX, FPDiv, FPSqrt, FPMulAdd (Arm ARM, shared/functions/float).
#pragma once

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::softfloat {

/// A nonzero magnitude sig * 2^(exp - width), sig's top bit clear to leave room for a carry.
/// Word is uint64_t or U128.
template <class Word>
struct Term {
  bool sign;
  int exp;
  Word sig;
};

/// a + b rounded once. The term with the larger exponent keeps all its bits; of the other one a jam
/// bit is enough, because where bits are lost (exponents more than one apart, words with at least
/// eight spare low bits) the difference keeps its leading bits.
template <class F, class Word>
GPUSIM_HD constexpr uint64_t add_terms(Term<Word> a, Term<Word> b, uint64_t& fpst) {
  if (a.exp < b.exp) {
    const Term<Word> t = a;
    a = b;
    b = t;
  }
  b.sig = shift_right_jam(b.sig, a.exp - b.exp);
  // Larger exponent does not mean larger magnitude: a product's top bit may be one lower.
  bool sign = a.sign;
  Word sum{};
  if (a.sign == b.sign) {
    sum = a.sig + b.sig;
  } else if (b.sig < a.sig) {
    sum = a.sig - b.sig;
  } else {
    sum = b.sig - a.sig;
    sign = b.sign;
  }
  if (is_zero(sum)) return cancelled_zero<F>(fpst);
  int exp = a.exp;
  const uint64_t sig = normalize(sum, exp);
  return round_pack<F>(sign, exp, sig, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t add_signed(uint64_t op1, uint64_t op2, bool negate2, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  Unpacked b = unpack<F>(op2, fpst);
  uint64_t result = 0;
  if (process_nans<F>(a, b, result, fpst)) return result;
  b.sign ^= negate2;  // after NaNs: FSUB returns op2's NaN with the sign that it has
  if (a.is_inf() && b.is_inf() && a.sign != b.sign) return invalid_operation<F>(fpst);
  if (a.is_inf()) return with_sign<F>(a.sign, F::kInf);
  if (b.is_inf()) return with_sign<F>(b.sign, F::kInf);
  if (a.is_zero() && b.is_zero()) {
    return a.sign == b.sign ? with_sign<F>(a.sign, 0) : cancelled_zero<F>(fpst);
  }
  // Exact; a subnormal that is left here is not flushed, since FZ flushed it on the way in.
  if (a.is_zero()) return with_sign<F>(b.sign, fp_abs<F>(op2));
  if (b.is_zero()) return with_sign<F>(a.sign, fp_abs<F>(op1));
  return add_terms<F>(Term<uint64_t>{a.sign, a.exp + 1, a.sig >> 1},
                      Term<uint64_t>{b.sign, b.exp + 1, b.sig >> 1}, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_add(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return add_signed<F>(op1, op2, false, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_sub(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return add_signed<F>(op1, op2, true, fpst);
}

/// FPMul, and FPMulX with `extended`: infinity times zero is then 2 and valid.
template <class F>
GPUSIM_HD constexpr uint64_t multiply(uint64_t op1, uint64_t op2, bool extended, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  uint64_t result = 0;
  if (process_nans<F>(a, b, result, fpst)) return result;
  const bool sign = a.sign != b.sign;
  if ((a.is_inf() && b.is_zero()) || (a.is_zero() && b.is_inf())) {
    return extended ? with_sign<F>(sign, F::kTwo) : invalid_operation<F>(fpst);
  }
  if (a.is_inf() || b.is_inf()) return with_sign<F>(sign, F::kInf);
  if (a.is_zero() || b.is_zero()) return with_sign<F>(sign, 0);
  int exp = a.exp + b.exp + 1;
  const uint64_t sig = normalize(multiply_wide(a.sig, b.sig), exp);
  return round_pack<F>(sign, exp, sig, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_mul(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return multiply<F>(op1, op2, false, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_mulx(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return multiply<F>(op1, op2, true, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_div(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  uint64_t result = 0;
  if (process_nans<F>(a, b, result, fpst)) return result;
  const bool sign = a.sign != b.sign;
  if ((a.is_inf() && b.is_inf()) || (a.is_zero() && b.is_zero())) {
    return invalid_operation<F>(fpst);
  }
  if (a.is_inf() || b.is_zero()) {
    if (!a.is_inf()) fpst |= kFpsrDzc;
    return with_sign<F>(sign, F::kInf);
  }
  if (a.is_zero() || b.is_inf()) return with_sign<F>(sign, 0);

  // Long division, in digits as wide as the divisor leaves room in a word. The quotient is in
  // [1, 2) and needs the fraction and a guard bit.
  constexpr int kDigitBits = 63 - F::kFracBits;
  constexpr int kDigits = (F::kFracBits + kDigitBits) / kDigitBits;
  constexpr int kQuotientBits = 1 + kDigits * kDigitBits;
  static_assert(kQuotientBits >= F::kFracBits + 2 && kQuotientBits < 64);
  int exp = a.exp - b.exp;
  const uint64_t divisor = b.sig >> kDigitBits;
  uint64_t remainder = a.sig >> kDigitBits;
  if (remainder < divisor) {
    remainder <<= 1;
    --exp;
  }
  remainder -= divisor;
  uint64_t quotient = 1;
  for (int i = 0; i < kDigits; ++i) {
    remainder <<= kDigitBits;
    quotient = (quotient << kDigitBits) | (remainder / divisor);
    remainder %= divisor;
  }
  const uint64_t sig = (quotient << (64 - kQuotientBits)) | (remainder != 0);
  return round_pack<F>(sign, exp, sig, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_sqrt(uint64_t op, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) return process_nan<F>(a, fpst);
  if (a.is_zero()) return with_sign<F>(a.sign, 0);
  if (a.sign) return invalid_operation<F>(fpst);
  if (a.is_inf()) return F::kInf;

  // Digit by digit, two radicand bits a step. The radicand is in [1, 4) * 2^62 (exponent made
  // even), so the first of the result bits is one. remainder <= 2 * root fits easily.
  constexpr int kRootBits = F::kFracBits + 2;
  const bool odd = (a.exp & 1) != 0;
  uint64_t radicand = odd ? a.sig : a.sig >> 1;
  uint64_t root = 0;
  uint64_t remainder = 0;
  for (int i = 0; i < kRootBits; ++i) {
    remainder = (remainder << 2) | (radicand >> 62);
    radicand <<= 2;
    const uint64_t trial = (root << 2) | 1;
    const uint64_t fits = remainder >= trial;  // without a branch: it is a coin toss
    remainder -= trial & (0 - fits);
    root = (root << 1) | fits;
  }
  const uint64_t sig = (root << (64 - kRootBits)) | (remainder != 0);
  return round_pack<F>(false, (a.exp - (odd ? 1 : 0)) / 2, sig, fpst);
}

/// a + b * c rounded once, then times 2^scale (before rounding), all finite and nonzero.
template <class F>
GPUSIM_HD constexpr uint64_t fused_finite(const Unpacked& addend, const Unpacked& b,
                                          const Unpacked& c, int scale, uint64_t& fpst) {
  // The product of normalised significands is in [2^126, 2^128): one step down frees the top bit.
  const U128 product = multiply_wide(b.sig, c.sig);
  return add_terms<F>(
      Term<U128>{addend.sign, addend.exp + 1 + scale, {addend.sig >> 1, addend.sig << 63}},
      Term<U128>{b.sign != c.sign, b.exp + c.exp + 2 + scale, shift_right_jam(product, 1)}, fpst);
}

/// FPMulAdd: addend + op1 * op2 with one rounding.
template <class F>
GPUSIM_HD constexpr uint64_t fp_muladd(uint64_t addend, uint64_t op1, uint64_t op2,
                                       uint64_t& fpst) {
  const Unpacked a = unpack<F>(addend, fpst);
  const Unpacked b = unpack<F>(op1, fpst);
  const Unpacked c = unpack<F>(op2, fpst);
  const bool inf_times_zero = (b.is_inf() && c.is_zero()) || (b.is_zero() && c.is_inf());
  uint64_t result = 0;
  if (process_nans<F>(a, b, c, result, fpst)) {
    if (a.type == FpClass::kQuietNan && inf_times_zero) return invalid_operation<F>(fpst);
    return result;
  }
  const bool inf_product = b.is_inf() || c.is_inf();
  const bool zero_product = b.is_zero() || c.is_zero();
  const bool product_sign = b.sign != c.sign;
  if (inf_times_zero || (a.is_inf() && inf_product && a.sign != product_sign)) {
    return invalid_operation<F>(fpst);
  }
  if (a.is_inf()) return with_sign<F>(a.sign, F::kInf);
  if (inf_product) return with_sign<F>(product_sign, F::kInf);
  if (zero_product) {
    if (!a.is_zero()) return addend;
    return a.sign == product_sign ? with_sign<F>(a.sign, 0) : cancelled_zero<F>(fpst);
  }
  if (a.is_zero()) {
    int exp = b.exp + c.exp + 1;
    const uint64_t sig = normalize(multiply_wide(b.sig, c.sig), exp);
    return round_pack<F>(product_sign, exp, sig, fpst);
  }
  return fused_finite<F>(a, b, c, 0, fpst);
}

}  // namespace gpusim::softfloat
