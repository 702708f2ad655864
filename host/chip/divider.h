// Division by a number that stays: most are powers of two.
#pragma once
#include <bit>
#include <cstdint>

namespace gpusim::host::chip {

class Divider {
 public:
  explicit Divider(uint64_t by = 1)
      : by_(by), shift_(std::has_single_bit(by) ? std::countr_zero(by) : -1) {}
  uint64_t quotient(uint64_t n) const { return shift_ >= 0 ? n >> shift_ : n / by_; }
  uint64_t remainder(uint64_t n) const { return shift_ >= 0 ? n & (by_ - 1) : n % by_; }

 private:
  uint64_t by_;
  int shift_;
};

}  // namespace gpusim::host::chip
