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
};

constexpr int bits_of(MatrixType t) {
  switch (t) {
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
  uint8_t depth = 16;
  MatrixType a = MatrixType::kF16, b = MatrixType::kF16, c = MatrixType::kF32, d = MatrixType::kF32;
  bool saturates = false;

  constexpr uint64_t pack() const {
    const auto byte = [](auto x, int n) { return uint64_t{static_cast<uint8_t>(x)} << 8 * n; };
    return byte(rows, 0) | byte(columns, 1) | byte(depth, 2) | byte(a, 3) | byte(b, 4) |
           byte(c, 5) | byte(d, 6) | byte(saturates, 7);
  }
  static constexpr MatrixOp unpack(uint64_t word) {
    const auto byte = [&](int n) { return static_cast<uint8_t>(word >> 8 * n); };
    return {byte(0),
            byte(1),
            byte(2),
            static_cast<MatrixType>(byte(3)),
            static_cast<MatrixType>(byte(4)),
            static_cast<MatrixType>(byte(5)),
            static_cast<MatrixType>(byte(6)),
            byte(7) != 0};
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

/// Registers of a lane for each operand.
constexpr int registers_of_a(const MatrixOp& m) {
  return m.rows * m.depth / 32 / per_register(m.a);
}
constexpr int registers_of_b(const MatrixOp& m) {
  return m.columns * m.depth / 32 / per_register(m.b);
}
constexpr int registers_of_sum(const MatrixOp& m, MatrixType t) {
  return m.rows * m.columns / 32 / per_register(t);
}

/// Of element `e` of register `r`.
constexpr Element element_of_a(const MatrixOp& m, Lane lane, int r, int e) {
  const int n = per_register(m.a), tile_rows = m.rows < 16 ? 8 : 16;
  const int per_tile = tile_rows * m.depth / 32 / n, tile = r / per_tile, k = r % per_tile;
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

/// Bytes of local memory through which a lane hands its registers over, one in 8 bytes.
inline constexpr uint32_t kMatrixBytes = 256;

}  // namespace gpusim::ptx
