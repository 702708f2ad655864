// The arithmetic of tensor cores.
//
// NVIDIA does not document it; published studies found it by experiments: Fasi, Higham, Mikaitis,
// Pranesh, "Numerical behavior of NVIDIA tensor cores" (PeerJ Computer Science 7:e330, 2021);
// Khattak, Mikaitis, "Accurate models of NVIDIA tensor cores" (arXiv:2512.07004); Xie, Wang, Yang,
// Yang, "MMA-Sim" (arXiv:2511.10909). Hopper's is as an H100 answered
// (docs/benchmarks/2026-11-26-h100.md).
//   - Products are exact. Sums are of a block of products and the accumulator at once; blocks
//     follow each other along the depth.
//   - All terms are aligned to the largest exponent (of a product: the sum of its factors'), with
//     some bits behind the point; what lies below is cut off. Their sum is exact.
//   - It becomes a single by cutting off; an f16 at the end by rounding to the nearest. A sum that
//     becomes zero is +0.
//   - Products of e4m3 and e5m2 for a warp are two of f16: of elements 4n and 4n + 1, then, with
//     their sum, of the others; what comes out is added to c as singles are. Those for a warpgroup
//     are one block of 32, with 13 bits behind the point, of the result, too.
//   - Not compared with a chip: sums of e4m3 and e5m2 that are f16, rounded once at the end; of a
//     sparse a, what is there counts as the products of a dense one would.
//   - Subnormals count. NaNs are 0x7fffffff and 0x7fff.
// f64: one fused multiplication and addition after the other. Integers are exact.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "translator/ptx/matrix_op.h"

namespace gpusim::ptx {

/// What differs between chips.
struct TensorCores {
  int block = 8;  // products of f16 and bf16 that are added at once
  int block_tf32 = 4;
  int fraction_bits = 24;
  // Those of a warp make e4m3 and e5m2 to f16 (mma); those of a warpgroup add 32 products at once,
  // with fewer bits (wgmma).
  bool widens_8_bits = true;
};
/// From compute capability 9.0 on: Hopper's. Before: those of Ampere.
TensorCores tensor_cores_of(uint32_t compute_capability);

/// Bits of elements.
class Matrix {
 public:
  Matrix(int rows, int columns) : columns_(columns), bits_(static_cast<size_t>(rows * columns)) {}
  uint64_t& at(Element e) { return bits_[static_cast<size_t>(e.row * columns_ + e.column)]; }
  /// Row after row.
  uint64_t& at(size_t place) { return bits_[place]; }

 private:
  int columns_;
  std::vector<uint64_t> bits_;
};

/// Of a * b + c, where `c` is what it adds to. `positions`: of a sparse a, where its elements are.
uint64_t element_of_product(const MatrixOp& op, const TensorCores& cores, Matrix& a, Matrix& b,
                            uint64_t c, int row, int column, Matrix* positions = nullptr);
/// Fills in the positions of 16 rows, `first_row` and on. `words`: of the lanes of a warp.
void read_positions(const MatrixOp& op, const std::array<uint32_t, 32>& words, int first_row,
                    Matrix& positions);
/// Element `e` of a register.
uint64_t part_of(uint64_t word, MatrixType t, int e);

using MatrixWords = std::array<uint64_t, kMatrixBytes / 8>;

/// Per lane, registers of a, b and c, of a sparse a also its metadata, one after the other, become
/// those of d.
void multiply(const MatrixOp& op, const TensorCores& cores, std::array<MatrixWords, 32>& lanes);

}  // namespace gpusim::ptx
