// What is left to chance, from one seed: GPUSIM_EMULATED_SEED.
#pragma once
#include <bit>
#include <cstdint>

namespace cuda_emulated {

uint64_t seed();

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 | 1) {}
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545f4914f6cdd1d >> 32);
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t{next()} * n >> 32); }
  // One of the bits of a mask that is not empty.
  uint32_t bit_of(uint32_t mask) {
    const uint32_t turn = next() >> 27;
    return (static_cast<uint32_t>(std::countr_zero(std::rotr(mask, static_cast<int>(turn)))) +
            turn) & 31;
  }

 private:
  uint64_t state_;
};
Random& chance();

}  // namespace cuda_emulated
