// FPCompare, FPCompareEQ/GE/GT, FPMax, FPMin, FPMaxNum, FPMinNum (Arm ARM,
// shared/functions/float).
#pragma once

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::softfloat {

/// -1, 0 or 1 as a is less than, equal to or greater than b; neither is a NaN.
GPUSIM_HD constexpr int order(const Unpacked& a, const Unpacked& b) {
  if (a.is_zero() && b.is_zero()) return 0;
  const int sign_a = a.is_zero() ? 0 : (a.sign ? -1 : 1);
  const int sign_b = b.is_zero() ? 0 : (b.sign ? -1 : 1);
  if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
  int magnitude = 0;
  if (a.is_inf() != b.is_inf()) {
    magnitude = a.is_inf() ? 1 : -1;
  } else if (a.is_inf()) {
    magnitude = 0;
  } else if (a.exp != b.exp) {
    magnitude = a.exp > b.exp ? 1 : -1;
  } else if (a.sig != b.sig) {
    magnitude = a.sig > b.sig ? 1 : -1;
  }
  return sign_a * magnitude;
}

/// FPCompare: NZCV, N in bit 3. `signal_quiet` (FCMPE): quiet NaNs raise IOC, too.
template <class F>
GPUSIM_HD constexpr uint64_t fp_compare(uint64_t op1, uint64_t op2, bool signal_quiet,
                                        uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  if (a.is_nan() || b.is_nan()) {
    if (a.is_snan() || b.is_snan() || signal_quiet) fpst |= kFpsrIoc;
    return 0b0011;
  }
  const int o = order(a, b);
  return o < 0 ? 0b1000 : o == 0 ? 0b0110 : 0b0010;
}

/// FPCompareEQ: quiet NaNs raise nothing. FPCompareGE and FPCompareGT: every NaN raises IOC.
template <class F>
GPUSIM_HD constexpr bool fp_compare_eq(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return fp_compare<F>(op1, op2, false, fpst) == 0b0110;
}
template <class F>
GPUSIM_HD constexpr bool fp_compare_ge(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  const uint64_t nzcv = fp_compare<F>(op1, op2, true, fpst);
  return nzcv == 0b0110 || nzcv == 0b0010;
}
template <class F>
GPUSIM_HD constexpr bool fp_compare_gt(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return fp_compare<F>(op1, op2, true, fpst) == 0b0010;
}

/// FPMax and FPMin: +0 is greater than -0.
template <class F>
GPUSIM_HD constexpr uint64_t select_extreme(uint64_t op1, uint64_t op2, bool maximum,
                                            uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  uint64_t result = 0;
  if (process_nans<F>(a, b, result, fpst)) return result;
  if (a.is_zero() && b.is_zero()) {
    return with_sign<F>(maximum ? a.sign && b.sign : a.sign || b.sign, 0);
  }
  const int o = order(a, b);
  const bool take_a = maximum ? o > 0 : o < 0;
  const Unpacked& taken = take_a ? a : b;
  return taken.is_zero() ? with_sign<F>(taken.sign, 0) : taken.bits;  // a flushed one is zero
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_max(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_extreme<F>(op1, op2, true, fpst);
}
template <class F>
GPUSIM_HD constexpr uint64_t fp_min(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_extreme<F>(op1, op2, false, fpst);
}

/// FPMaxNum and FPMinNum: a single quiet NaN counts as the infinity that loses.
template <class F>
GPUSIM_HD constexpr uint64_t select_extreme_number(uint64_t op1, uint64_t op2, bool maximum,
                                                   uint64_t& fpst) {
  const bool quiet1 = (op1 & F::kDefaultNan) == F::kDefaultNan;
  const bool quiet2 = (op2 & F::kDefaultNan) == F::kDefaultNan;
  const uint64_t loser = with_sign<F>(maximum, F::kInf);
  if (quiet1 && !quiet2) op1 = loser;
  if (quiet2 && !quiet1) op2 = loser;
  return select_extreme<F>(op1, op2, maximum, fpst);
}

/// minimumNumber and maximumNumber of IEEE 754-2019: a NaN of either kind loses to a number.
template <class F>
GPUSIM_HD constexpr uint64_t select_number(uint64_t op1, uint64_t op2, bool maximum,
                                           uint64_t& fpst) {
  const Unpacked a = unpack<F>(op1, fpst);
  const Unpacked b = unpack<F>(op2, fpst);
  if (a.is_nan() == b.is_nan()) return select_extreme<F>(op1, op2, maximum, fpst);
  if (a.is_snan() || b.is_snan()) fpst |= kFpsrIoc;
  const Unpacked& number = a.is_nan() ? b : a;
  return number.is_zero() ? with_sign<F>(number.sign, 0) : number.bits;
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_minimum_number(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_number<F>(op1, op2, false, fpst);
}
template <class F>
GPUSIM_HD constexpr uint64_t fp_maximum_number(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_number<F>(op1, op2, true, fpst);
}

template <class F>
GPUSIM_HD constexpr uint64_t fp_maxnum(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_extreme_number<F>(op1, op2, true, fpst);
}
template <class F>
GPUSIM_HD constexpr uint64_t fp_minnum(uint64_t op1, uint64_t op2, uint64_t& fpst) {
  return select_extreme_number<F>(op1, op2, false, fpst);
}

}  // namespace gpusim::softfloat
