#include "host/ptx/warpgroup.h"

#include <cstring>

#include "host/ptx/matrix.h"
#include "host/ptx/matrix_products.h"

namespace gpusim::ptx {
namespace {

constexpr int kGroupRows = 64;

// An operand in shared memory: its major direction is the one along which elements are next to each
// other, the depth or, if transposed, the rows of a or columns of b. PTX ISA, "Matrix Descriptor"
// and "Canonical Layouts".
class SharedMatrix {
 public:
  SharedMatrix(uint64_t descriptor, bool is_transposed, int element_bits)
      : start_((descriptor & kField) << 4),
        leading_((descriptor >> 16 & kField) << 4),
        stride_((descriptor >> 32 & kField) << 4),
        base_(descriptor >> 49 & 7),
        swizzle_(static_cast<uint32_t>(descriptor >> 62)),
        is_transposed_(is_transposed),
        element_bits_(static_cast<uint64_t>(element_bits)) {}

  // Of the byte with element (n, k): n is the row of a, or the column of b.
  uint64_t offset(int n, int k) const {
    const uint64_t major = static_cast<uint64_t>(is_transposed_ ? n : k) * element_bits_ / 8;
    const auto minor = static_cast<uint64_t>(is_transposed_ ? k : n);
    if (swizzle_ == 0) {
      // Pieces of 8 rows of 16 bytes.
      const uint64_t along = is_transposed_ ? stride_ : leading_,
                     across = is_transposed_ ? leading_ : stride_;
      return start_ + major / kChunk * along + major % kChunk + minor / 8 * across +
             minor % 8 * kChunk;
    }
    const uint64_t width = kWidest >> (swizzle_ - 1);  // of a row: 128, 64 or 32 bytes
    const uint64_t linear = start_ + major / width * (is_transposed_ ? leading_ : width) +
                            major % width + minor / 8 * stride_ + minor % 8 * width;
    const uint64_t row = (linear >> 7) - base_;
    return linear ^ (row & (width / kChunk - 1)) * kChunk;
  }

 private:
  static constexpr uint64_t kField = 0x3fff, kChunk = 16, kWidest = 128;
  uint64_t start_, leading_, stride_, base_;
  uint32_t swizzle_;
  bool is_transposed_;
  uint64_t element_bits_;
};

uint64_t negated(uint64_t bits, MatrixType t) {
  return bits ^ uint64_t { 1 } << (bits_of(t) - 1);
}

}  // namespace

std::optional<uint64_t> multiply_group(const WarpgroupOp& op, TensorCores cores,
                                       std::span<const uint8_t> shared,
                                       std::span<GroupWords, kGroupThreads> lanes) {
  cores.widens_8_bits = false;
  const MatrixOp& m = op.matrix;
  const auto sums = static_cast<size_t>(words_of_sum(op)),
             of_a = static_cast<size_t>(words_of_a(op)),
             behind_a = sums + of_a + (m.is_sparse ? 1 : 0);
  const GroupWords& any = lanes[0];
  Matrix a(kGroupRows, m.stored_depth()), b(m.depth, m.columns);
  Matrix positions(m.is_sparse ? kGroupRows : 0, m.stored_depth());
  std::optional<uint64_t> beyond;
  const auto load = [&](const SharedMatrix& from, int n, int k, MatrixType t) -> uint64_t {
    const auto bytes = static_cast<uint64_t>((bits_of(t) + 7) / 8), at = from.offset(n, k);
    if (at + bytes > shared.size()) {
      beyond = at;
      return 0;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, &shared[at], bytes);
    return t == MatrixType::kB1 ? bits >> k % 8 & 1 : bits;
  };
  const SharedMatrix shared_b(any[behind_a], op.b_transposed, bits_of(m.b));
  for (int k = 0; k < m.depth; ++k)
    for (int n = 0; n < m.columns; ++n) {
      const uint64_t bits = load(shared_b, n, k, m.b);
      b.at({k, n}) = op.b_negated ? negated(bits, m.b) : bits;
    }
  if (op.a_in_registers) {
    for (uint32_t t = 0; t < kGroupThreads; ++t)
      for (int r = 0; r < static_cast<int>(of_a); ++r)
        for (int e = 0; e < per_register(m.a); ++e) {
          const Element at = element_of_a(m, Lane(t % 32), r, e);
          a.at({at.row + static_cast<int>(t / 32) * m.rows, at.column}) =
              part_of(lanes[t][sums + static_cast<size_t>(r)], m.a, e);
        }
  } else {
    const SharedMatrix shared_a(any[sums], op.a_transposed, bits_of(m.a));
    for (int row = 0; row < kGroupRows; ++row)
      for (int k = 0; k < m.stored_depth(); ++k) a.at({row, k}) = load(shared_a, row, k, m.a);
  }
  if (op.a_negated)
    for (int row = 0; row < kGroupRows; ++row)
      for (int k = 0; k < m.stored_depth(); ++k) a.at({row, k}) = negated(a.at({row, k}), m.a);
  if (m.is_sparse)
    for (uint32_t warp = 0; warp < kGroupWarps; ++warp) {
      std::array<uint32_t, 32> words;
      for (size_t n = 0; n < words.size(); ++n)
        words[n] = static_cast<uint32_t>(lanes[warp * 32 + n][sums + of_a]);
      read_positions(m, words, static_cast<int>(warp) * m.rows, positions);
    }
  if (beyond) return beyond;
  const bool adds = any[behind_a + 1] != 0;
  const Products products(m, cores, a, b, kGroupRows, m.is_sparse ? &positions : nullptr);
  for (uint32_t t = 0; t < kGroupThreads; ++t)
    for (int r = 0; r < static_cast<int>(sums); ++r) {
      uint64_t& word = lanes[t][static_cast<size_t>(r)];
      uint64_t result = 0;
      for (int e = 0; e < per_register(m.d); ++e) {
        const Element at = element_of_sum(m, m.d, Lane(t % 32), r, e);
        const uint64_t c = adds ? part_of(word, m.d, e) : 0;
        const int row = at.row + static_cast<int>(t / 32) * m.rows;
        result |= products.element(c, row, at.column) << e * bits_of(m.d) % 64;
      }
      word = result;
    }
  return std::nullopt;
}

}  // namespace gpusim::ptx
