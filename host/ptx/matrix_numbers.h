// Numbers of tensor cores, taken apart and put together.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "translator/ptx/matrix_op.h"

namespace gpusim::ptx {

// significand * 2^(exponent - fraction bits); the exponent is that of the leading bit of normal
// numbers, and the least one of subnormals.
struct Number {
  bool is_negative = false, is_inf = false, is_nan = false;
  int exponent = 0, fraction_bits = 0;
  uint64_t significand = 0;
};

inline Number decode(uint64_t bits, int exponent_bits, int fraction_bits) {
  const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
  const int most = (1 << exponent_bits) - 1, bias = most / 2;
  const int field = static_cast<int>(bits >> fraction_bits) & most;
  Number n{.is_negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0,
           .exponent = std::max(field, 1) - bias,
           .fraction_bits = fraction_bits,
           .significand = fraction};
  if (field == most) {
    (fraction == 0 ? n.is_inf : n.is_nan) = true;
    return n;
  }
  if (field != 0) n.significand |= uint64_t{1} << fraction_bits;
  return n;
}

inline Number decode(uint64_t bits, MatrixType t) {
  switch (t) {
    case MatrixType::kF16:
      return decode(bits & 0xffff, 5, 10);
    case MatrixType::kBf16:
      return decode(bits & 0xffff, 8, 7);
    case MatrixType::kTf32:
      return decode((bits & 0xffffffff) >> 13, 8, 10);
    case MatrixType::kE5m2:
      return decode(bits & 0xff, 5, 2);
    case MatrixType::kE4m3: {
      Number n = decode(bits & 0xff, 4, 3);
      if (!n.is_inf && !n.is_nan) return n;
      // The largest exponent is one of numbers, but for the largest fraction.
      n.is_inf = false;
      n.is_nan = (bits & 7) == 7;
      n.significand = 8 | (bits & 7);
      return n;
    }
    default:
      return decode(bits & 0xffffffff, 8, 23);
  }
}

/// Of a half, a bf16 or a tf32.
constexpr int fraction_bits_of(MatrixType t) { return t == MatrixType::kBf16 ? 7 : 10; }

// sum * 2^exponent as a single, cut off.
inline uint64_t single_of(int64_t sum, int exponent) {
  const uint64_t sign = sum < 0 ? 0x80000000 : 0;
  auto size = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  if (size == 0) return 0;
  // Numbers of 24 bits, or the last place of subnormals.
  const int shift = std::max(static_cast<int>(std::bit_width(size)) - 24, -149 - exponent);
  size = shift >= 64 ? 0 : shift >= 0 ? size >> shift : size << -shift;
  exponent += shift;
  if ((size >> 23) == 0) return sign | size;  // subnormal
  const int field = exponent + 23 + 127;
  if (field >= 255) return sign | 0x7f800000;
  return sign | static_cast<uint64_t>(field) << 23 | (size & 0x7fffff);
}

// sum * 2^exponent as a half, rounded to the nearest, ties to even.
inline uint64_t half_of(int64_t sum, int exponent) {
  const uint64_t sign = sum < 0 ? 0x8000 : 0;
  const auto size = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  // Numbers of 11 bits, or the last place of subnormals.
  const int shift = std::max(static_cast<int>(std::bit_width(size)) - 11, -24 - exponent);
  uint64_t units = 0;
  if (shift <= 0) {
    units = size << -shift;
  } else if (shift < 64) {
    const uint64_t rest = size & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
    units = size >> shift;
    units += rest > half || (rest == half && (units & 1) != 0);
  }
  if (units == 0) return 0;
  // A carry goes into the exponent as it should. Exponents of subnormals are one unit less.
  const int field = exponent + shift + 24;
  const uint64_t bits = (static_cast<uint64_t>(field) << 10) + units;
  return sign | std::min<uint64_t>(bits, 0x7c00);
}

inline int64_t integer_of(uint64_t bits, MatrixType t) {
  switch (t) {
    case MatrixType::kU8:
      return static_cast<int64_t>(bits & 0xff);
    case MatrixType::kU4:
      return static_cast<int64_t>(bits & 0xf);
    case MatrixType::kS4:
      return static_cast<int64_t>((bits & 0xf) ^ 8) - 8;
    default:
      return static_cast<int8_t>(bits);
  }
}

}  // namespace gpusim::ptx
