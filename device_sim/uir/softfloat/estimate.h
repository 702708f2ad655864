// Reciprocal and reciprocal square root: estimates and Newton steps (Arm ARM,
// shared/functions/float: FPRecipEstimate, FPRSqrtEstimate, FPRecpX, FPRecipStepFused,
// FPRSqrtStepFused, UnsignedRecipEstimate, UnsignedRSqrtEstimate).
#pragma once

#include "device_sim/uir/softfloat/arith.h"

namespace gpusim::softfloat {

/// RecipEstimate: 256 <= a < 512 stands for [0.5, 1), the result 256..511 for [1, 2).
GPUSIM_HD constexpr uint64_t recip_estimate_table(uint64_t a) {
  const uint64_t b = (uint64_t{1} << 19) / (a * 2 + 1);
  return (b + 1) / 2;
}

/// RecipSqrtEstimate: 128 <= a < 512 stands for [0.25, 1), the result 256..511 for [1, 2).
GPUSIM_HD constexpr uint64_t rsqrt_estimate_table(uint64_t a) {
  a = a < 256 ? a * 2 + 1 : ((a >> 1 << 1) + 1) * 2;
  // The largest b with a * b^2 < 2^28, b / 512 being in [1, 2).
  uint64_t b = 512;
  for (uint64_t bit = 256; bit != 0; bit >>= 1) {
    if (a * (b + bit) * (b + bit) < (uint64_t{1} << 28)) b += bit;
  }
  return (b + 1) / 2;
}

/// FPRecipEstimate (FRECPE).
template <class F>
GPUSIM_HD constexpr uint64_t fp_recip_estimate(uint64_t op, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) return process_nan<F>(a, fpst);
  if (a.is_inf()) return with_sign<F>(a.sign, 0);
  if (a.is_zero()) {
    fpst |= kFpsrDzc;
    return with_sign<F>(a.sign, F::kInf);
  }
  if (a.exp < F::kMinExp - 2) {  // 1 / a is beyond the largest number
    fpst |= kFpsrOfc | kFpsrIxc;
    const Rounding mode = rounding_mode(fpst);
    const bool to_inf =
        mode == Rounding::kTieEven || mode == (a.sign ? Rounding::kNegInf : Rounding::kPosInf);
    return with_sign<F>(a.sign, to_inf ? F::kInf : F::kMaxNormal);
  }
  if (flushes_to_zero<F>(fpst) && a.exp >= F::kBias - 1) {  // 1 / a is subnormal
    fpst |= kFpsrUfc;
    return with_sign<F>(a.sign, 0);
  }
  const uint64_t estimate = recip_estimate_table(a.sig >> 55);
  // 1.f * 2^exp has the estimate times 2^(-1 - exp). Subnormal results are cut, not rounded.
  int field = F::kBias - 1 - a.exp;
  uint64_t frac = (estimate & 0xFF) << (F::kFracBits - 8);
  if (field <= 0) {
    frac = (frac | (F::kFracMask + 1)) >> (1 - field);
    field = 0;
  }
  return with_sign<F>(a.sign, (static_cast<uint64_t>(field) << F::kFracBits) | frac);
}

/// FPRSqrtEstimate (FRSQRTE).
template <class F>
GPUSIM_HD constexpr uint64_t fp_rsqrt_estimate(uint64_t op, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) return process_nan<F>(a, fpst);
  if (a.is_zero()) {
    fpst |= kFpsrDzc;
    return with_sign<F>(a.sign, F::kInf);
  }
  if (a.sign) return invalid_operation<F>(fpst);
  if (a.is_inf()) return 0;
  // a = m * 2^e with m in [0.25, 1) and e even.
  const bool odd = (a.exp & 1) != 0;
  const uint64_t scaled = a.sig >> (odd ? 55 : 56);
  const int half_exp = (a.exp + (odd ? 1 : 2)) / 2;
  const uint64_t estimate = rsqrt_estimate_table(scaled);
  return (static_cast<uint64_t>(F::kBias - half_exp) << F::kFracBits) |
         ((estimate & 0xFF) << (F::kFracBits - 8));
}

/// FPRecpX (FRECPX): the exponent inverted, the fraction dropped.
template <class F>
GPUSIM_HD constexpr uint64_t fp_recpx(uint64_t op, uint64_t& fpst) {
  const Unpacked a = unpack<F>(op, fpst);
  if (a.is_nan()) return process_nan<F>(a, fpst);
  const uint64_t field = op & F::kInf;
  const uint64_t largest = F::kInf - (F::kFracMask + 1);
  return with_sign<F>(a.sign, field == 0 ? largest : field ^ F::kInf);
}

/// (constant - op1 * op2) * 2^scale with one rounding; `undefined_value` for infinity times zero.
template <class F>
GPUSIM_HD constexpr uint64_t newton_step(uint64_t op1, uint64_t op2, uint64_t constant, int scale,
                                         uint64_t undefined_value, uint64_t& fpst) {
  const Unpacked a = unpack<F>(fp_neg<F>(op1), fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  uint64_t result = 0;
  if (process_nans<F>(a, b, result, fpst)) return result;
  const bool inf_times_zero = (a.is_inf() && b.is_zero()) || (a.is_zero() && b.is_inf());
  if (inf_times_zero) return undefined_value;
  if (a.is_inf() || b.is_inf()) return with_sign<F>(a.sign != b.sign, F::kInf);
  const Unpacked c = unpack<F>(constant, fpst);
  if (a.is_zero() || b.is_zero()) return round_pack<F>(false, c.exp + scale, c.sig, fpst);
  return fused_finite<F>(c, a, b, scale, fpst);
}

/// FPRecipStepFused (FRECPS): 2 - op1 * op2.
template <class F>
GPUSIM_HD constexpr uint64_t fp_recip_step(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return newton_step<F>(op1, op2, F::kTwo, 0, F::kTwo, fpst);
}

/// FPRSqrtStepFused (FRSQRTS): (3 - op1 * op2) / 2.
template <class F>
GPUSIM_HD constexpr uint64_t fp_rsqrt_step(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return newton_step<F>(op1, op2, F::kTwo | F::kQuietBit, -1, F::kOnePointFive, fpst);
}

/// UnsignedRecipEstimate and UnsignedRSqrtEstimate (URECPE, URSQRTE) on 32-bit fractions.
GPUSIM_HD constexpr uint64_t unsigned_recip_estimate(uint64_t op) {
  if ((op >> 31) == 0) return 0xFFFFFFFF;
  return recip_estimate_table(op >> 23) << 23;
}
GPUSIM_HD constexpr uint64_t unsigned_rsqrt_estimate(uint64_t op) {
  if ((op >> 30) == 0) return 0xFFFFFFFF;
  return rsqrt_estimate_table(op >> 23) << 23;
}

}  // namespace gpusim::softfloat
