// Products of small matrices that a warp computes together: mma and wmma.mma.
#pragma once
#include <cstdint>

namespace gpusim::ptx {

enum class MatrixType : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kF64,
  kU8,
  kS8,
  kF32,
  kS32,
  kE4m3,  // a sign, four bits of exponent, three of fraction; no infinities
  kE5m2,
  kU4,
  kS4,
  kB1,  // bits, whose "product" is a logical operation
};

constexpr int bits_of(MatrixType t) {
  switch (t) {
    case MatrixType::kB1:
      return 1;
    case MatrixType::kU4:
    case MatrixType::kS4:
      return 4;
    case MatrixType::kU8:
    case MatrixType::kS8:
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
      return 8;
    case MatrixType::kF16:
    case MatrixType::kBf16:
      return 16;
    case MatrixType::kF64:
      return 64;
    default:
      return 32;
  }
}
constexpr bool is_float_of_8_bits(MatrixType t) {
  return t == MatrixType::kE4m3 || t == MatrixType::kE5m2;
}
// Elements in a register of 32 bits; a register of 64 holds one.
constexpr int per_register(MatrixType t) { return bits_of(t) < 32 ? 32 / bits_of(t) : 1; }

/// d = a * b + c: rows x depth, depth x columns, rows x columns.
struct MatrixOp {
  uint8_t rows = 16;
  uint16_t columns = 8;  // those of a warpgroup are up to 256, and go no other way
  uint16_t depth = 16;
  MatrixType a = MatrixType::kF16, b = MatrixType::kF16, c = MatrixType::kF32, d = MatrixType::kF32;
  bool saturates = false;
  bool is_sparse = false;  // of each row of a, half is there, and says where (position_of)
  uint8_t selector = 0;    // of the lanes that say it
  bool is_xor = false;     // of bits: else and
  // m8n8k4 of f16: four products, each of two quarters of eight lanes (Quads).
  bool is_by_quads = false, a_by_columns = false, b_by_rows = false;

  constexpr int stored_depth() const { return is_sparse ? depth / 2 : depth; }

  constexpr uint64_t pack() const {
    const auto field = [](auto x, int n) { return static_cast<uint64_t>(x) << n; };
    return field(rows, 0) | field(columns, 8) | field(depth, 16) | field(a, 32) | field(b, 36) |
           field(c, 40) | field(d, 44) | field(saturates, 48) | field(is_sparse, 49) |
           field(selector, 50) | field(is_xor, 52) | field(is_by_quads, 53) |
           field(a_by_columns, 54) | field(b_by_rows, 55);
  }
  static constexpr MatrixOp unpack(uint64_t word) {
    const auto type = [&](int n) { return static_cast<MatrixType>(word >> n & 15); };
    const auto bit = [&](int n) { return (word >> n & 1) != 0; };
    return {.rows = static_cast<uint8_t>(word),
            .columns = static_cast<uint8_t>(word >> 8),
            .depth = static_cast<uint16_t>(word >> 16),
            .a = type(32),
            .b = type(36),
            .c = type(40),
            .d = type(44),
            .saturates = bit(48),
            .is_sparse = bit(49),
            .selector = static_cast<uint8_t>(word >> 50 & 3),
            .is_xor = bit(52),
            .is_by_quads = bit(53),
            .a_by_columns = bit(54),
            .b_by_rows = bit(55)};
  }
};

// Fragments: which element a lane has in which register. They are those of mma, by tiles of 16 (or
// 8) rows and 8 columns; wmma leaves its own open.
struct Element {
  int row, column;
};
struct Lane {
  int group, member;  // eight groups of four
  constexpr explicit Lane(uint32_t lane)
      : group(static_cast<int>(lane / 4)), member(static_cast<int>(lane % 4)) {}
};

/// Registers of a lane for each operand. In quads, eight lanes have a matrix.
constexpr int lanes_of(const MatrixOp& m) { return m.is_by_quads ? 8 : 32; }
constexpr int registers_of_a(const MatrixOp& m) {
  return m.rows * m.stored_depth() / lanes_of(m) / per_register(m.a);
}
constexpr int registers_of_b(const MatrixOp& m) {
  return m.columns * m.depth / lanes_of(m) / per_register(m.b);
}
constexpr int registers_of_sum(const MatrixOp& m, MatrixType t) {
  return m.rows * m.columns / lanes_of(m) / per_register(t);
}

/// Registers of a, b and c, and of a sparse a those that say where its elements are.
constexpr int words_handed_over(const MatrixOp& m) {
  return registers_of_a(m) + registers_of_b(m) + registers_of_sum(m, m.c) + (m.is_sparse ? 1 : 0);
}

/// Of element `e` of register `r`; of a sparse a, among those that are there.
constexpr Element element_of_a(const MatrixOp& m, Lane lane, int r, int e) {
  const int n = per_register(m.a), tile_rows = m.rows < 16 ? 8 : 16;
  const int per_tile = tile_rows * m.stored_depth() / 32 / n, tile = r / per_tile, k = r % per_tile;
  const int half = tile_rows == 16 ? k % 2 : 0, step = tile_rows == 16 ? k / 2 : k;
  return {16 * tile + 8 * half + lane.group, (4 * step + lane.member) * n + e};
}
constexpr Element element_of_b(const MatrixOp& m, Lane lane, int r, int e) {
  const int n = per_register(m.b), per_tile = 8 * m.depth / 32 / n;
  return {(4 * (r % per_tile) + lane.member) * n + e, 8 * (r / per_tile) + lane.group};
}
constexpr Element element_of_sum(const MatrixOp& m, MatrixType t, Lane lane, int r, int e) {
  const int n = per_register(t), tile_rows = m.rows < 16 ? 8 : 16;
  const int per_tile = tile_rows * 8 / 32 / n, tile = r / per_tile;
  const int k = (r % per_tile) * n + e;  // of the lane's elements in the tile
  const int tile_row = tile / (m.columns / 8), tile_column = tile % (m.columns / 8);
  return {16 * tile_row + 8 * (k / 2) + lane.group, 8 * tile_column + 2 * lane.member + k % 2};
}

/// m8n8k4 of f16 (PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16"): lanes 4 n to 4 n + 3 and
/// 16 more have product n.
struct Quads {
  int product, upper, lane;  // upper: 4 for lanes from 16 on
  constexpr explicit Quads(uint32_t of)
      : product(static_cast<int>(of / 4 % 4)),
        upper(of >= 16 ? 4 : 0),
        lane(static_cast<int>(of % 4)) {}

  /// Of element `e` of all registers.
  constexpr Element of_a(const MatrixOp& m, int e) const {
    return m.a_by_columns ? Element{e + upper, lane} : Element{lane + upper, e};
  }
  constexpr Element of_b(const MatrixOp& m, int e) const {
    return m.b_by_rows ? Element{lane, e + upper} : Element{e, lane + upper};
  }
  constexpr Element of_sum(MatrixType t, int e) const {
    if (t == MatrixType::kF16) return {lane + upper, e};
    return {(lane & 1) + (e & 2) + upper, (e & 4) + (lane & 2) + (e & 1)};
  }
};

/// A sparse a has two elements of four (tf32: one of two; of 4 bits: two pairs of four), and two
/// bits for each say which (PTX ISA, "Sparse matrix storage"). A row's bits are in one or more
/// lanes of a group of four, which the selector names.
struct Metadata {
  int lane, bit;  // of the group: which has it, and where it begins
};
constexpr int indices_of_row(const MatrixOp& m) {
  if (m.a == MatrixType::kTf32) return 2 * m.stored_depth();
  return bits_of(m.a) == 4 ? m.stored_depth() / 2 : m.stored_depth();
}
/// Of index `n` of a row of 16.
constexpr Metadata metadata_of(const MatrixOp& m, int row, int n) {
  const int upper = row / 8, bits = 2 * indices_of_row(m), bit = 2 * n;
  // Of 16 bits of a row: half a word of one lane. Of 32 bits: of singles and halves, two lanes have
  // half words; of smaller elements each row has a word. Of 64 bits: two words.
  if (bits == 16) return {m.selector, 16 * upper + bit};
  if (bits == 32 && bits_of(m.a) >= 16)
    return {2 * (m.selector & 1) + bit / 16, 16 * upper + bit % 16};
  const int first = bits == 32 ? 2 * (m.selector & 1) : 0;
  return {first + 2 * (bit / 32) + upper, bit % 32};
}
/// Where in the row element `k` of those that are there lies; `index`: the two bits of index n.
template <class Index>
constexpr int position_of(const MatrixOp& m, int k, Index index) {
  if (m.a == MatrixType::kTf32) return 2 * k + (index(2 * k) >> 1);
  if (bits_of(m.a) == 4) return k / 4 * 8 + 2 * index(k / 2) + k % 2;
  return k / 2 * 4 + index(k);
}

/// Bytes of local memory through which a lane hands its registers over, one in 8 bytes.
inline constexpr uint32_t kMatrixBytes = 256;

}  // namespace gpusim::ptx
