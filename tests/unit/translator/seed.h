// Random tests print their seed; GPUSIM_SEED replays it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <random>

namespace gpusim {

inline uint64_t seed_from_env_or_random() {
  const char* text = std::getenv("GPUSIM_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}

}  // namespace gpusim
