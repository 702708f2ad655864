// Meaning of `aux` in the floating-point micro-ops that serve several formats.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim {

enum class FpFormat : uint8_t { kF16, kF32, kF64 };

// Rounding modes as in FPCR.RMode, then those that only instructions name.
enum class FpRounding : uint8_t { kNearestEven, kPlusInf, kMinusInf, kZero, kNearestAway, kFpcr, kFpcrExact };

// IEEE 754-2008's minimum that gives a NaN for any, its minNum, and 754-2019's minimumNumber, which
// also takes the number beside a signalling NaN.
enum class FpMinMax : uint8_t { kMin, kMax, kMinNum, kMaxNum, kMinimumNumber, kMaximumNumber };
GPUSIM_HD constexpr bool is_minimum(FpMinMax kind) { return static_cast<int>(kind) % 2 == 0; }
enum class FpMisc1 : uint8_t { kRecipEstimate, kRsqrtEstimate, kRecipX, kSqrt, kJscvt };
enum class FpMisc2 : uint8_t { kAdd, kSub, kMul, kDiv, kMulX, kRecipStep, kRsqrtStep, kAbsDiff };
enum class FpMisc3 : uint8_t { kMulAdd };
// Of vector comparisons to a mask (uir/helpers.def).
enum class FpTest : uint8_t { kEq, kGe, kGt, kAbsGe, kAbsGt };

// f2i: float format | rounding << 2 | is_signed << 5 | is_64bit << 6.
constexpr uint8_t f2i_aux(FpFormat f, FpRounding r, bool is_signed, bool is_64bit) {
  return static_cast<uint8_t>(static_cast<int>(f) | static_cast<int>(r) << 2 | is_signed << 5 |
                              is_64bit << 6);
}
// i2f: float format | is_signed << 5 | is_64bit << 6; rounds by the state word.
constexpr uint8_t i2f_aux(FpFormat f, bool is_signed, bool is_64bit) {
  return f2i_aux(f, FpRounding::kNearestEven, is_signed, is_64bit);
}

}  // namespace gpusim
