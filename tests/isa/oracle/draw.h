// Random values for comparisons of single instructions with an emulator.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gpusim::oracle {

using Rng = std::mt19937_64;

inline bool one_in(Rng& rng, unsigned n) { return rng() % n == 0; }

/// Values that integer instructions find interesting.
uint64_t random_value(Rng& rng);
/// 64 bits with floating-point values of one format: zeros, subnormals, infinities, NaNs, small
/// integers, neighbours and anything.
uint64_t random_fp_word(Rng& rng);
/// An address in the window (window.h) with room for `room` bytes behind it, most often aligned to
/// them; now and then one across an end of the window or of its writable part.
uint64_t random_address(Rng& rng, unsigned room);

/// The word with another value in a field of its row.
template <class Row>
uint32_t with_field(const Row& row, uint32_t word, char letter, uint64_t value) {
  const auto f = row.pattern.field(letter);
  const uint32_t mask = ((1u << f.width) - 1) << f.lsb;
  return (word & ~mask) | ((static_cast<uint32_t>(value) << f.lsb) & mask);
}

/// Seed from GPUSIM_SEED, or a random one.
uint64_t test_seed();
/// Backends to compare: the one of GPUSIM_BACKEND, or scalar and simd.
std::vector<std::string> backends_under_test();
/// `usual`, or what GPUSIM_ORACLE_CASES says, or `in_long_runs` with GPUSIM_LONG.
unsigned case_count(unsigned usual, unsigned in_long_runs);

}  // namespace gpusim::oracle
