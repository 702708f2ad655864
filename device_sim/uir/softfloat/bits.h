// Integer building blocks of the softfloat: leading zeros, 128-bit words, and right shifts that
// remember in bit 0 whether a one fell out ("jam"), which is all that rounding needs to know.
#pragma once

#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim::softfloat {

/// Leading zeros of x; 64 for 0.
GPUSIM_HD constexpr int count_leading_zeros(uint64_t x) {
  if (x == 0) return 64;
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return __clzll(static_cast<long long>(x));
#endif
  return __builtin_clzll(x);
}

/// The low `count` bits set, for 0 <= count <= 64.
GPUSIM_HD constexpr uint64_t low_mask(int count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// Unsigned 128-bit integer: __int128 is not portable to every device compiler.
struct U128 {
  uint64_t hi;
  uint64_t lo;
};

GPUSIM_HD constexpr U128 operator+(U128 a, U128 b) {
  const uint64_t lo = a.lo + b.lo;
  return {a.hi + b.hi + (lo < a.lo ? 1 : 0), lo};
}
GPUSIM_HD constexpr U128 operator-(U128 a, U128 b) {
  return {a.hi - b.hi - (a.lo < b.lo ? 1 : 0), a.lo - b.lo};
}
GPUSIM_HD constexpr bool operator<(U128 a, U128 b) {
  return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}
GPUSIM_HD constexpr bool is_zero(uint64_t a) { return a == 0; }
GPUSIM_HD constexpr bool is_zero(U128 a) { return (a.hi | a.lo) == 0; }

GPUSIM_HD constexpr U128 multiply_wide(uint64_t a, uint64_t b) {
  const uint64_t mask = 0xFFFFFFFF;
  const uint64_t low = (a & mask) * (b & mask);
  const uint64_t mid1 = (a >> 32) * (b & mask) + (low >> 32);
  const uint64_t mid2 = (a & mask) * (b >> 32) + (mid1 & mask);
  return {(a >> 32) * (b >> 32) + (mid1 >> 32) + (mid2 >> 32), (mid2 << 32) | (low & mask)};
}

/// a >> count (count >= 0, any size) with every bit that falls out ORed into bit 0.
GPUSIM_HD constexpr uint64_t shift_right_jam(uint64_t a, int count) {
  if (count == 0) return a;
  if (count > 63) return a != 0;
  return (a >> count) | ((a << (64 - count)) != 0);
}
GPUSIM_HD constexpr U128 shift_right_jam(U128 a, int count) {
  if (count == 0) return a;
  if (count > 63) return {0, shift_right_jam(a.hi, count - 64) | (a.lo != 0)};
  return {a.hi >> count, (a.hi << (64 - count)) | shift_right_jam(a.lo, count)};
}

/// Shifts a nonzero a left until its top bit is set and lowers `exp` by as much.
GPUSIM_HD constexpr uint64_t normalize(uint64_t a, int& exp) {
  const int shift = count_leading_zeros(a);
  exp -= shift;
  return a << shift;  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult): a is not 0
}
/// The same for 128 bits, with the lower half jammed into the result's bit 0.
GPUSIM_HD constexpr uint64_t normalize(U128 a, int& exp) {
  if (a.hi == 0) {
    exp -= 64;
    return normalize(a.lo, exp);
  }
  const int shift = count_leading_zeros(a.hi);
  exp -= shift;
  const uint64_t hi = shift == 0 ? a.hi : (a.hi << shift) | (a.lo >> (64 - shift));
  return hi | ((a.lo << shift) != 0);
}

}  // namespace gpusim::softfloat
