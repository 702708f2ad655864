#include "host/ptx/matrix_products.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "host/ptx/matrix_numbers.h"

namespace gpusim::ptx {
namespace {

// Of zeros: never the largest, whatever the other factor's.
constexpr int32_t kNoExponent = -1'000'000, kLeastExponent = -500'000;

bool is_float_with_factors(MatrixType t) {
  return t == MatrixType::kF16 || t == MatrixType::kBf16 || t == MatrixType::kTf32;
}

}  // namespace

Products::Products(const MatrixOp& op, const TensorCores& cores, Matrix& a, Matrix& b, int rows,
                   Matrix* positions)
    : op_(op), cores_(cores), a_(a), b_(b), positions_(positions) {
  if (positions != nullptr || op.a == MatrixType::kB1) return;
  if (op.a == MatrixType::kF64) {
    kind_ = Kind::kDoubles;
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < op.depth; ++k) double_a_.push_back(std::bit_cast<double>(a.at({row, k})));
    for (int column = 0; column < op.columns; ++column)
      for (int k = 0; k < op.depth; ++k)
        double_b_.push_back(std::bit_cast<double>(b.at({k, column})));
    return;
  }
  if (op.c == MatrixType::kS32)
    kind_ = Kind::kIntegers;
  else if (is_float_with_factors(op.a))
    kind_ = Kind::kFloats;
  else
    return;
  take_apart(a, op.a, rows, true, of_a_, special_a_);
  take_apart(b, op.b, op.columns, false, of_b_, special_b_);
}

void Products::take_apart(Matrix& from, MatrixType t, int vectors, bool are_rows,
                          std::vector<Factor>& factors, std::vector<uint8_t>& are_special) {
  factors.reserve(static_cast<size_t>(vectors) * op_.depth);
  are_special.assign(static_cast<size_t>(vectors), 0);
  for (int v = 0; v < vectors; ++v)
    for (int k = 0; k < op_.depth; ++k) {
      const uint64_t bits = from.at(are_rows ? Element{v, k} : Element{k, v});
      if (kind_ == Kind::kIntegers) {
        factors.push_back({0, static_cast<int32_t>(integer_of(bits, t))});
        continue;
      }
      const Number n = decode(bits, t);
      if (n.is_inf || n.is_nan) are_special[static_cast<size_t>(v)] = 1;
      const auto size = static_cast<int32_t>(n.significand);
      factors.push_back({size == 0 ? kNoExponent : n.exponent, n.is_negative ? -size : size});
    }
}

uint64_t Products::of_integers(uint64_t c, const Factor* a, const Factor* b) const {
  int64_t sum = static_cast<int32_t>(c);
  for (int k = 0; k < op_.depth; ++k) sum += int64_t{a[k].significand} * b[k].significand;
  if (op_.saturates)
    sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                              std::numeric_limits<int32_t>::max());
  return static_cast<uint32_t>(sum);
}

// False: a sum is infinite or no number.
bool Products::of_floats(uint64_t c, const Factor* a, const Factor* b, uint64_t& result) const {
  const int depth = op_.depth,
            block = op_.a == MatrixType::kTf32 ? cores_.block_tf32 : cores_.block;
  const int fraction_bits = cores_.fraction_bits;
  // Products have fewer bits behind the point than are kept.
  const int widen = fraction_bits - 2 * fraction_bits_of(op_.a);
  Number sum = decode(c, op_.c);
  for (int first = 0; first < depth; first += block) {
    if (sum.is_inf || sum.is_nan) return false;
    const int end = std::min(first + block, depth);
    int32_t most = sum.significand != 0 ? sum.exponent : kNoExponent;
    for (int k = first; k < end; ++k) most = std::max(most, a[k].exponent + b[k].exponent);
    int64_t total = 0;
    if (most > kLeastExponent) {
      const auto aligned = [&](uint64_t size, int32_t exponent) {
        return static_cast<int64_t>(size >> std::min(most - exponent, 63));
      };
      for (int k = first; k < end; ++k) {
        const int32_t product = a[k].significand * b[k].significand;
        const int64_t term = aligned(static_cast<uint64_t>(std::abs(product)) << widen,
                                     a[k].exponent + b[k].exponent);
        total += product < 0 ? -term : term;
      }
      if (sum.significand != 0) {
        const int64_t term =
            aligned(sum.significand << (fraction_bits - sum.fraction_bits), sum.exponent);
        total += sum.is_negative ? -term : term;
      }
    }
    const bool is_half = end == depth && op_.d == MatrixType::kF16;
    result = total == 0 ? 0 : (is_half ? half_of : single_of)(total, most - fraction_bits);
    if (end < depth) sum = decode(result, MatrixType::kF32);
  }
  return true;
}

uint64_t Products::element(uint64_t c, int row, int column) const {
  const auto from_a = static_cast<size_t>(row) * op_.depth,
             from_b = static_cast<size_t>(column) * op_.depth;
  uint64_t result = 0;
  switch (kind_) {
    case Kind::kIntegers:
      return of_integers(c, &of_a_[from_a], &of_b_[from_b]);
    case Kind::kDoubles: {
      double sum = std::bit_cast<double>(c);
      for (size_t k = 0; k < op_.depth; ++k)
        sum = std::fma(double_a_[from_a + k], double_b_[from_b + k], sum);
      return std::bit_cast<uint64_t>(sum);
    }
    case Kind::kFloats:
      if (special_a_[static_cast<size_t>(row)] == 0 &&
          special_b_[static_cast<size_t>(column)] == 0 &&
          of_floats(c, &of_a_[from_a], &of_b_[from_b], result))
        return result;
      break;
    default:
      break;
  }
  return element_of_product(op_, cores_, a_, b_, c, row, column, positions_);
}

}  // namespace gpusim::ptx
