#include "host/ptx/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "host/ptx/matrix_numbers.h"
#include "host/ptx/matrix_products.h"

namespace gpusim::ptx {
namespace {

constexpr uint64_t kNan32 = 0x7fffffff, kNan16 = 0x7fff;

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

// The sum of terms, of which the last is the accumulator; as a half if `is_half`, else as a single.
uint64_t fused_sum(const std::vector<Number>& terms, int fraction_bits, bool is_half) {
  const uint64_t nan = is_half ? kNan16 : kNan32, infinity = is_half ? 0x7c00 : 0x7f800000,
                 minus_infinity = is_half ? 0xfc00 : 0xff800000;
  bool has_plus = false, has_minus = false;
  int most = std::numeric_limits<int>::min();
  for (const Number& t : terms) {
    if (t.is_nan) return nan;
    if (t.is_inf) (t.is_negative ? has_minus : has_plus) = true;
    if (t.significand != 0) most = std::max(most, t.exponent);
  }
  if (has_plus && has_minus) return nan;
  if (has_plus || has_minus) return has_plus ? infinity : minus_infinity;
  if (most == std::numeric_limits<int>::min()) return 0;
  int64_t sum = 0;
  for (const Number& t : terms) {
    if (t.significand == 0) continue;
    const int shift = t.exponent - most + fraction_bits - t.fraction_bits;
    const uint64_t size = shift >= 0    ? t.significand << shift
                          : shift > -64 ? t.significand >> -shift
                                        : 0;
    sum += t.is_negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
  }
  return (is_half ? half_of : single_of)(sum, most - fraction_bits);
}

// The factors of an element of the result: row `row` of a, what stands beside it in b.
struct Factors {
  Matrix &a, &b;
  int row, column;
  Matrix* positions;

  uint64_t of_a(int k) const { return a.at({row, k}); }
  uint64_t of_b(int k) const {
    return b.at({positions == nullptr ? k : static_cast<int>(positions->at({row, k})), column});
  }
};

uint64_t element_of_floats_of_8_bits(const MatrixOp& m, const TensorCores& cores,
                                     const Factors& factors, uint64_t c) {
  const auto factor_product = [&](int k) {
    return product(decode(factors.of_a(k), m.a), decode(factors.of_b(k), m.b));
  };
  const bool is_half = m.d == MatrixType::kF16;
  std::vector<Number> terms;
  if (!cores.widens_8_bits) {
    constexpr int kFractionBits = 13;
    for (int k = 0; k < m.stored_depth(); ++k) terms.push_back(factor_product(k));
    terms.push_back(decode(c, m.c));
    const uint64_t single = fused_sum(terms, kFractionBits, is_half);
    if (is_half) return single;
    return single == kNan32 ? single : single & ~uint64_t{(1 << (23 - kFractionBits)) - 1};
  }
  uint64_t sum = 0;
  for (int half = 0; half < 2; ++half) {
    terms.clear();
    for (int k = 0; k < m.stored_depth(); ++k)
      if (k / 2 % 2 == half) terms.push_back(factor_product(k));
    terms.push_back(decode(sum, MatrixType::kF32));
    sum = fused_sum(terms, cores.fraction_bits, false);
  }
  constexpr int kBeyondBoth = 40;  // bits, of which a single and a half need fewer
  if (is_half) return fused_sum({decode(sum, MatrixType::kF32), decode(c, m.c)}, kBeyondBoth, true);
  const float all = std::bit_cast<float>(static_cast<uint32_t>(sum)) +
                    std::bit_cast<float>(static_cast<uint32_t>(c));
  return std::isnan(all) ? kNan32 : std::bit_cast<uint32_t>(all);
}

}  // namespace

TensorCores tensor_cores_of(uint32_t compute_capability) {
  if (compute_capability >= 90) return {.block = 16, .block_tf32 = 8, .fraction_bits = 25};
  return {};
}

uint64_t element_of_product(const MatrixOp& m, const TensorCores& cores, Matrix& a, Matrix& b,
                            uint64_t c, int row, int column, Matrix* positions) {
  const Factors factors{a, b, row, column, positions};
  if (is_float_of_8_bits(m.a)) return element_of_floats_of_8_bits(m, cores, factors, c);
  const int depth = m.stored_depth();
  if (m.a == MatrixType::kF64) {
    double sum = std::bit_cast<double>(c);
    for (int k = 0; k < depth; ++k)
      sum = std::fma(std::bit_cast<double>(factors.of_a(k)), std::bit_cast<double>(factors.of_b(k)),
                     sum);
    return std::bit_cast<uint64_t>(sum);
  }
  if (m.c == MatrixType::kS32) {
    int64_t sum = static_cast<int32_t>(c);
    for (int k = 0; k < depth; ++k) {
      const uint64_t x = factors.of_a(k), y = factors.of_b(k);
      if (m.a == MatrixType::kB1)
        sum += static_cast<int64_t>(m.is_xor ? x ^ y : x & y);
      else
        sum += integer_of(x, m.a) * integer_of(y, m.b);
    }
    if (m.saturates)
      sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                std::numeric_limits<int32_t>::max());
    return static_cast<uint32_t>(sum);
  }
  const int block = m.a == MatrixType::kTf32 ? cores.block_tf32 : cores.block;
  Number sum = decode(c, m.c);
  uint64_t result = 0;
  std::vector<Number> terms;
  for (int first = 0; first < depth; first += block) {
    terms.clear();
    const bool is_last = first + block >= depth;
    for (int k = first; k < std::min<int>(first + block, depth); ++k)
      terms.push_back(product(decode(factors.of_a(k), m.a), decode(factors.of_b(k), m.b)));
    terms.push_back(sum);
    result = fused_sum(terms, cores.fraction_bits, is_last && m.d == MatrixType::kF16);
    sum = decode(result, MatrixType::kF32);
  }
  return result;
}

uint64_t part_of(uint64_t word, MatrixType t, int e) {
  const int bits = bits_of(t);
  return bits == 64 ? word : word >> e * bits & ((uint64_t{1} << bits) - 1);
}

void read_positions(const MatrixOp& m, const std::array<uint32_t, 32>& words, int first_row,
                    Matrix& positions) {
  for (int row = 0; row < 16; ++row) {
    const auto index = [&](int n) {
      const Metadata at = metadata_of(m, row, n);
      return static_cast<int>(words[static_cast<size_t>(4 * (row % 8) + at.lane)] >> at.bit & 3);
    };
    for (int k = 0; k < m.stored_depth(); ++k)
      positions.at({first_row + row, k}) = static_cast<uint64_t>(position_of(m, k, index));
  }
}

namespace {

void multiply_in_quads(const MatrixOp& m, const TensorCores& cores,
                       std::array<MatrixWords, 32>& lanes) {
  const int of_a = registers_of_a(m), of_b = registers_of_b(m), of_c = registers_of_sum(m, m.c);
  const auto element = [](const uint64_t* word, MatrixType t, int e) {
    return part_of(word[e / per_register(t)], t, e % per_register(t));
  };
  std::array<MatrixWords, 32> results{};
  for (int product = 0; product < 4; ++product) {
    Matrix a(m.rows, m.depth), b(m.depth, m.columns), c(m.rows, m.columns);
    const auto of_product = [&](auto use) {
      for (uint32_t n = 0; n < 32; ++n)
        if (const Quads lane(n); lane.product == product) use(n, lane);
    };
    of_product([&](uint32_t n, const Quads& lane) {
      const uint64_t* const word = lanes[n].data();
      for (int e = 0; e < of_a * per_register(m.a); ++e)
        a.at(lane.of_a(m, e)) = element(word, m.a, e);
      for (int e = 0; e < of_b * per_register(m.b); ++e)
        b.at(lane.of_b(m, e)) = element(word + of_a, m.b, e);
      for (int e = 0; e < of_c * per_register(m.c); ++e)
        c.at(lane.of_sum(m.c, e)) = element(word + of_a + of_b, m.c, e);
    });
    const Products products(m, cores, a, b, m.rows);
    of_product([&](uint32_t n, const Quads& lane) {
      for (int e = 0; e < registers_of_sum(m, m.d) * per_register(m.d); ++e) {
        const Element at = lane.of_sum(m.d, e);
        results[n][static_cast<size_t>(e / per_register(m.d))] |=
            products.element(c.at(at), at.row, at.column) << e % per_register(m.d) * bits_of(m.d);
      }
    });
  }
  lanes = results;
}

}  // namespace

namespace {

// Where in their matrices the elements of all lanes' registers are: lane by lane, register by
// register.
struct Places {
  uint64_t op = 0;  // packed; 0 is none
  std::vector<uint16_t> a, b, c, d;
};
const Places& places_of(const MatrixOp& m) {
  static thread_local Places known;
  if (known.op == m.pack()) return known;
  known = {.op = m.pack()};
  const auto put = [](std::vector<uint16_t>& to, Element e, int columns) {
    to.push_back(static_cast<uint16_t>(e.row * columns + e.column));
  };
  for (uint32_t n = 0; n < 32; ++n) {
    const Lane lane(n);
    for (int r = 0; r < registers_of_a(m); ++r)
      for (int e = 0; e < per_register(m.a); ++e)
        put(known.a, element_of_a(m, lane, r, e), m.stored_depth());
    for (int r = 0; r < registers_of_b(m); ++r)
      for (int e = 0; e < per_register(m.b); ++e)
        put(known.b, element_of_b(m, lane, r, e), m.columns);
    for (const auto& [t, to] : {std::pair{m.c, &known.c}, {m.d, &known.d}})
      for (int r = 0; r < registers_of_sum(m, t); ++r)
        for (int e = 0; e < per_register(t); ++e)
          put(*to, element_of_sum(m, t, lane, r, e), m.columns);
  }
  return known;
}

}  // namespace

void multiply(const MatrixOp& m, const TensorCores& cores, std::array<MatrixWords, 32>& lanes) {
  if (m.is_by_quads) return multiply_in_quads(m, cores, lanes);
  const Places& places = places_of(m);
  Matrix a(m.rows, m.stored_depth()), b(m.depth, m.columns), c(m.rows, m.columns);
  Matrix positions(m.is_sparse ? m.rows : 0, m.stored_depth());
  std::array<uint32_t, 32> metadata{};
  const int of_a = registers_of_a(m), of_b = registers_of_b(m), of_c = registers_of_sum(m, m.c);
  const uint16_t *to_a = places.a.data(), *to_b = places.b.data(), *to_c = places.c.data();
  for (uint32_t n = 0; n < 32; ++n) {
    const uint64_t* word = lanes[n].data();
    const auto take = [&](Matrix& to, const uint16_t*& place, int registers, MatrixType t) {
      for (int r = 0; r < registers; ++r, ++word)
        for (int e = 0; e < per_register(t); ++e) to.at(size_t{*place++}) = part_of(*word, t, e);
    };
    take(a, to_a, of_a, m.a);
    take(b, to_b, of_b, m.b);
    take(c, to_c, of_c, m.c);
    if (m.is_sparse) metadata[n] = static_cast<uint32_t>(*word);
  }
  if (m.is_sparse) read_positions(m, metadata, 0, positions);
  const Products products(m, cores, a, b, m.rows, m.is_sparse ? &positions : nullptr);
  const uint16_t* place = places.d.data();
  for (uint32_t n = 0; n < 32; ++n)
    for (int r = 0; r < registers_of_sum(m, m.d); ++r) {
      uint64_t word = 0;
      for (int e = 0; e < per_register(m.d); ++e, ++place)
        word |= products.element(c.at(size_t{*place}), *place / m.columns, *place % m.columns)
                << e * bits_of(m.d) % 64;
      lanes[n][static_cast<size_t>(r)] = word;
    }
}

}  // namespace gpusim::ptx
