#include "host/ptx/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace gpusim::ptx {
namespace {

constexpr int kFractionBits = 24, kBlock16 = 8, kBlockTf32 = 4;
constexpr uint64_t kNan32 = 0x7fffffff, kNan16 = 0x7fff;

// significand * 2^(exponent - fraction bits); the exponent is that of the leading bit of normal
// numbers, and the least one of subnormals.
struct Number {
  bool is_negative = false, is_inf = false, is_nan = false;
  int exponent = 0, fraction_bits = 0;
  uint64_t significand = 0;
};

Number decode(uint64_t bits, int exponent_bits, int fraction_bits) {
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

Number decode(uint64_t bits, MatrixType t) {
  switch (t) {
    case MatrixType::kF16:
      return decode(bits & 0xffff, 5, 10);
    case MatrixType::kBf16:
      return decode(bits & 0xffff, 8, 7);
    case MatrixType::kTf32:
      return decode((bits & 0xffffffff) >> 13, 8, 10);
    default:
      return decode(bits & 0xffffffff, 8, 23);
  }
}

Number product(const Number& a, const Number& b) {
  Number p{.is_negative = a.is_negative != b.is_negative,
           .exponent = a.exponent + b.exponent,
           .fraction_bits = a.fraction_bits + b.fraction_bits,
           .significand = a.significand * b.significand};
  const bool is_zero = (!a.is_inf && a.significand == 0) || (!b.is_inf && b.significand == 0);
  p.is_nan = a.is_nan || b.is_nan || ((a.is_inf || b.is_inf) && is_zero);
  p.is_inf = !p.is_nan && (a.is_inf || b.is_inf);
  return p;
}

// sum * 2^exponent as a single, cut off.
uint64_t single_of(int64_t sum, int exponent) {
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

// The sum of terms, of which the last is the accumulator.
uint64_t fused_sum(const std::vector<Number>& terms) {
  bool has_plus = false, has_minus = false;
  int most = std::numeric_limits<int>::min();
  for (const Number& t : terms) {
    if (t.is_nan) return kNan32;
    if (t.is_inf) (t.is_negative ? has_minus : has_plus) = true;
    if (t.significand != 0) most = std::max(most, t.exponent);
  }
  if (has_plus && has_minus) return kNan32;
  if (has_plus || has_minus) return has_plus ? 0x7f800000 : 0xff800000;
  if (most == std::numeric_limits<int>::min()) return 0;
  int64_t sum = 0;
  for (const Number& t : terms) {
    if (t.significand == 0) continue;
    const int shift = t.exponent - most + kFractionBits - t.fraction_bits;
    const uint64_t size = shift >= 0    ? t.significand << shift
                          : shift > -64 ? t.significand >> -shift
                                        : 0;
    sum += t.is_negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
  }
  return single_of(sum, most - kFractionBits);
}

// To the nearest, ties to even.
uint64_t half_of(uint64_t single) {
  const auto x = std::bit_cast<float>(static_cast<uint32_t>(single));
  if (std::isnan(x)) return kNan16;
  const uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  const float size = std::fabs(x);
  if (size >= 65520.0f) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int last = std::max(exponent - 11, -24);  // of the result's last place
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, -last)));
  if (units == 0) return sign;
  // A carry goes into the exponent as it should.
  return sign | ((static_cast<uint64_t>(last + 24) << 10) + units);
}

int64_t integer(uint64_t bits, MatrixType t) {
  return t == MatrixType::kU8 ? static_cast<int64_t>(bits & 0xff)
                              : static_cast<int64_t>(static_cast<int8_t>(bits));
}

}  // namespace

uint64_t element_of_product(const MatrixOp& m, Matrix& a, Matrix& b, uint64_t c, int row,
                            int column) {
  if (m.a == MatrixType::kF64) {
    double sum = std::bit_cast<double>(c);
    for (int k = 0; k < m.depth; ++k)
      sum = std::fma(std::bit_cast<double>(a.at({row, k})),
                     std::bit_cast<double>(b.at({k, column})), sum);
    return std::bit_cast<uint64_t>(sum);
  }
  if (m.c == MatrixType::kS32) {
    int64_t sum = static_cast<int32_t>(c);
    for (int k = 0; k < m.depth; ++k)
      sum += integer(a.at({row, k}), m.a) * integer(b.at({k, column}), m.b);
    if (m.saturates)
      sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                std::numeric_limits<int32_t>::max());
    return static_cast<uint32_t>(sum);
  }
  const int block = m.a == MatrixType::kTf32 ? kBlockTf32 : kBlock16;
  Number sum = decode(c, m.c);
  uint64_t single = 0;
  std::vector<Number> terms;
  for (int first = 0; first < m.depth; first += block) {
    terms.clear();
    for (int k = first; k < std::min<int>(first + block, m.depth); ++k)
      terms.push_back(product(decode(a.at({row, k}), m.a), decode(b.at({k, column}), m.b)));
    terms.push_back(sum);
    single = fused_sum(terms);
    sum = decode(single, MatrixType::kF32);
  }
  return m.d == MatrixType::kF16 ? half_of(single) : single;
}

uint64_t part_of(uint64_t word, MatrixType t, int e) {
  const int bits = bits_of(t);
  return bits == 64 ? word : word >> e * bits & ((uint64_t{1} << bits) - 1);
}

void multiply(const MatrixOp& m, std::array<MatrixWords, 32>& lanes) {
  Matrix a(m.rows, m.depth), b(m.depth, m.columns), c(m.rows, m.columns);
  const int of_a = registers_of_a(m), of_b = registers_of_b(m), of_c = registers_of_sum(m, m.c);
  for (uint32_t n = 0; n < 32; ++n) {
    const Lane lane(n);
    const uint64_t* word = lanes[n].data();
    for (int r = 0; r < of_a; ++r, ++word)
      for (int e = 0; e < per_register(m.a); ++e)
        a.at(element_of_a(m, lane, r, e)) = part_of(*word, m.a, e);
    for (int r = 0; r < of_b; ++r, ++word)
      for (int e = 0; e < per_register(m.b); ++e)
        b.at(element_of_b(m, lane, r, e)) = part_of(*word, m.b, e);
    for (int r = 0; r < of_c; ++r, ++word)
      for (int e = 0; e < per_register(m.c); ++e)
        c.at(element_of_sum(m, m.c, lane, r, e)) = part_of(*word, m.c, e);
  }
  for (uint32_t n = 0; n < 32; ++n)
    for (int r = 0; r < registers_of_sum(m, m.d); ++r) {
      uint64_t word = 0;
      for (int e = 0; e < per_register(m.d); ++e) {
        const Element at = element_of_sum(m, m.d, Lane(n), r, e);
        word |= element_of_product(m, a, b, c.at(at), at.row, at.column) << e * bits_of(m.d) % 64;
      }
      lanes[n][static_cast<size_t>(r)] = word;
    }
}

}  // namespace gpusim::ptx
