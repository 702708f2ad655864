// Elements of matrices for tests: small whole numbers, whose products and sums are exact in every
// type, and bits.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gpusim::ptx::test {

inline int width_of(const std::string& type) {
  if (type == "b1") return 1;
  if (type == "u4" || type == "s4") return 4;
  if (type == "u8" || type == "s8" || type == "e4m3" || type == "e5m2") return 8;
  if (type == "f16" || type == "bf16") return 16;
  return type == "f64" ? 64 : 32;
}

inline int draw_element(const std::string& type, std::mt19937& random) {
  const auto within = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
  };
  if (type == "b1") return within(0, 1);
  if (type == "u4") return within(0, 15);
  if (type == "s4") return within(-8, 7);
  if (type == "u8") return within(0, 255);
  if (type == "s8") return within(-128, 127);
  return within(-4, 4);
}

inline uint64_t encode(const std::string& type, int x) {
  const auto value = static_cast<float>(x);
  const auto bits = [](auto y, auto whole) { return std::bit_cast<decltype(whole)>(y); };
  if (type == "f16") return bits(static_cast<_Float16>(value), uint16_t{});
  if (type == "bf16") return bits(value, uint32_t{}) >> 16;
  if (type == "f32" || type == "tf32") return bits(value, uint32_t{});
  if (type == "f64") return bits(static_cast<double>(x), uint64_t{});
  if (type == "e4m3" || type == "e5m2") {
    const uint64_t sign = x < 0 ? 0x80 : 0;
    if (x == 0) return 0;
    const int fraction_bits = type == "e4m3" ? 3 : 2, bias = type == "e4m3" ? 7 : 15;
    const int exponent = std::ilogb(value);
    const double fraction = std::fabs(value) / std::ldexp(1.0, exponent) - 1;
    return sign | static_cast<uint64_t>((exponent + bias) << fraction_bits) |
           static_cast<uint64_t>(std::ldexp(fraction, fraction_bits));
  }
  const int width = width_of(type);
  return static_cast<uint64_t>(static_cast<uint32_t>(x)) & ((uint64_t{1} << width) - 1);
}

/// Elements of a row of a sparse matrix, as they are and what is left of them.
struct SparseRow {
  std::vector<int> whole, kept;
  std::vector<uint32_t> indices;  // of two bits
};
inline SparseRow draw_sparse_row(const std::string& type, int depth, std::mt19937& random) {
  SparseRow row{std::vector<int>(static_cast<size_t>(depth)), {}, {}};
  const auto keep = [&](int at) {
    row.whole[static_cast<size_t>(at)] = draw_element(type, random);
    row.kept.push_back(row.whole[static_cast<size_t>(at)]);
  };
  if (type == "tf32") {  // one of two: 0b0100 or 0b1110
    for (int chunk = 0; chunk < depth; chunk += 2) {
      const auto second = static_cast<uint32_t>(random() % 2);
      keep(chunk + static_cast<int>(second));
      row.indices.push_back(2 * second);
      row.indices.push_back(2 * second + 1);
    }
    return row;
  }
  const int unit = width_of(type) == 4 ? 2 : 1;  // elements that stay together
  for (int chunk = 0; chunk < depth; chunk += 4 * unit) {
    const auto first = static_cast<uint32_t>(random() % 3);
    const auto second = static_cast<uint32_t>(first + 1 + random() % (3 - first));
    for (const uint32_t index : {first, second}) {
      for (int k = 0; k < unit; ++k) keep(chunk + static_cast<int>(index) * unit + k);
      row.indices.push_back(index);
    }
  }
  return row;
}

/// Metadata of a lane of a warp, of 16 rows: PTX ISA, the figures of "Matrix fragments for
/// multiply-accumulate operation with sparse matrix A". What nobody reads is random.
inline uint32_t metadata_of_lane(const std::string& type, const SparseRow* rows, uint32_t lane,
                                 uint32_t selector, std::mt19937& random) {
  const uint32_t group = lane / 4, member = lane % 4;
  const auto indices = [&](uint32_t row, size_t first, size_t count) {
    uint32_t bits = 0;
    for (size_t k = 0; k < count; ++k) bits |= rows[row].indices[first + k] << 2 * k;
    return bits;
  };
  const size_t of_row = rows[0].indices.size();
  if (of_row == 8) {  // one lane: the rows group and group + 8
    if (member != selector) return static_cast<uint32_t>(random());
    return indices(group, 0, 8) | indices(group + 8, 0, 8) << 16;
  }
  if (of_row == 16 && width_of(type) >= 16) {  // two lanes: the row's two halves
    if (member / 2 != selector) return static_cast<uint32_t>(random());
    const size_t first = member % 2 * 8;
    return indices(group, first, 8) | indices(group + 8, first, 8) << 16;
  }
  if (of_row == 16) {  // two lanes: a row each
    if (member / 2 != selector) return static_cast<uint32_t>(random());
    return indices(group + 8 * (member % 2), 0, 16);
  }
  return indices(group + 8 * (member % 2), member / 2 * 16, 16);  // all four
}

}  // namespace gpusim::ptx::test
