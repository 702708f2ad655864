// Products of matrices of a warpgroup, four warps (wgmma): d = a * b + d, 64 rows. b, and a where
// it is not in registers, lie in shared memory, as descriptors say (PTX ISA, "Matrix Descriptor").
#pragma once
#include <cstdint>

#include "translator/ptx/matrix_op.h"

namespace gpusim::ptx {

inline constexpr uint32_t kGroupWarps = 4, kGroupThreads = 128;

struct WarpgroupOp {
  MatrixOp matrix{.rows = 16};  // of each warp
  bool a_in_registers = false;
  bool a_transposed = false,
       b_transposed = false;  // rows of a, columns of b are next to each other
  bool a_negated = false, b_negated = false;

  constexpr uint64_t pack() const {
    const auto bit = [](bool x, int n) { return uint64_t{x} << n; };
    return static_cast<uint64_t>(matrix.a) | static_cast<uint64_t>(matrix.b) << 4 |
           static_cast<uint64_t>(matrix.d) << 8 | uint64_t{matrix.columns} << 16 |
           uint64_t{matrix.depth} << 32 | bit(a_in_registers, 48) | bit(a_transposed, 49) |
           bit(b_transposed, 50) | bit(a_negated, 51) | bit(b_negated, 52) |
           bit(matrix.saturates, 53) | bit(matrix.is_sparse, 54) | uint64_t{matrix.selector} << 55;
  }
  static constexpr WarpgroupOp unpack(uint64_t x) {
    const auto type = [&](int n) { return static_cast<MatrixType>(x >> n & 15); };
    const auto bit = [&](int n) { return (x >> n & 1) != 0; };
    return {.matrix = {.rows = 16,
                       .columns = static_cast<uint16_t>(x >> 16),
                       .depth = static_cast<uint16_t>(x >> 32),
                       .a = type(0),
                       .b = type(4),
                       .c = type(8),
                       .d = type(8),
                       .saturates = bit(53),
                       .is_sparse = bit(54),
                       .selector = static_cast<uint8_t>(x >> 55 & 3)},
            .a_in_registers = bit(48),
            .a_transposed = bit(49),
            .b_transposed = bit(50),
            .a_negated = bit(51),
            .b_negated = bit(52)};
  }
};

/// Words of a lane: those of d, of a (registers, or one descriptor), metadata of a sparse a, the
/// descriptor of b, and whether d counts.
constexpr int words_of_sum(const WarpgroupOp& o) { return registers_of_sum(o.matrix, o.matrix.d); }
constexpr int words_of_a(const WarpgroupOp& o) {
  return o.a_in_registers ? registers_of_a(o.matrix) : 1;
}
constexpr int words_handed_over(const WarpgroupOp& o) {
  return words_of_sum(o) + words_of_a(o) + (o.matrix.is_sparse ? 1 : 0) + 2;
}
inline constexpr uint32_t kGroupRoomBytes = 8 * (128 + 4 + 1 + 2);

}  // namespace gpusim::ptx
