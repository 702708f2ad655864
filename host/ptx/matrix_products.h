// Products of whole matrices: what element_of_product (matrix.h) states for one element, with the
// factors taken apart once for all elements that they are in.
#pragma once
#include <cstdint>
#include <vector>

#include "host/ptx/matrix.h"

namespace gpusim::ptx {

class Products {
 public:
  /// a has so many rows. The matrices and positions have to stay.
  Products(const MatrixOp& op, const TensorCores& cores, Matrix& a, Matrix& b, int rows,
           Matrix* positions = nullptr);
  /// Of a * b + c, where `c` is what it adds to.
  uint64_t element(uint64_t c, int row, int column) const;

 private:
  // Of halves and tf32: value = significand * 2^(exponent - fraction bits).
  struct Factor {
    int32_t exponent, significand;
  };
  enum class Kind : uint8_t { kStated, kIntegers, kDoubles, kFloats };

  void take_apart(Matrix& from, MatrixType t, int vectors, bool are_rows,
                  std::vector<Factor>& factors, std::vector<uint8_t>& are_special);
  uint64_t of_integers(uint64_t c, const Factor* a, const Factor* b) const;
  bool of_floats(uint64_t c, const Factor* a, const Factor* b, uint64_t& result) const;

  const MatrixOp& op_;
  const TensorCores& cores_;
  Matrix &a_, &b_;
  Matrix* positions_;
  Kind kind_ = Kind::kStated;
  // Along the depth, row after row of a, column after column of b.
  std::vector<Factor> of_a_, of_b_;
  std::vector<double> double_a_, double_b_;
  std::vector<uint8_t> special_a_, special_b_;  // rows, columns with infinities or NaNs
};

}  // namespace gpusim::ptx
