// Interleavings that differ on purpose, to shake out races in guest programs.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim {

// Equal arguments, equal "random" number (the finaliser of SplitMix64, Steele et al. 2014).
GPUSIM_HD_INLINE uint64_t mixed(uint64_t seed, uint64_t slice, uint64_t who) {
  uint64_t x = seed + 0x9e3779b97f4a7c15 * (slice + 1) + 0xd1342543de82ef95 * (who + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// How long a slice of so many instructions is for this core or group. Seed 0: as long as the
// others'. Otherwise every other one is short: most races need a core to be stopped between two
// accesses.
GPUSIM_HD_INLINE uint64_t jittered(uint64_t seed, uint64_t slice, uint64_t who,
                                   uint64_t instructions) {
  if (seed == 0) return instructions;
  const uint64_t x = mixed(seed, slice, who);
  constexpr uint64_t kShort = 32;
  const uint64_t most = (x & 1) && instructions > kShort ? kShort : instructions;
  return 1 + (x >> 1) % most;
}

}  // namespace gpusim
