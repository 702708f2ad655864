#pragma once
#include <cstdint>
#include <cstdlib>
#include <random>

namespace gpusim::test {

/// GPUSIM_SEED, or a new one.
inline uint64_t seed() {
  if (const char* text = std::getenv("GPUSIM_SEED")) return std::strtoull(text, nullptr, 0);
  return std::random_device{}();
}

}  // namespace gpusim::test
