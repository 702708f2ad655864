// Seeds for random tests: GPUSIM_SEED replays one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

inline uint64_t seed_from_environment() {
  const char* text = std::getenv("GPUSIM_SEED");
  if (text != nullptr) return std::strtoull(text, nullptr, 0);
  return std::random_device{}();
}
