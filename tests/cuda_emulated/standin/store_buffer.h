// What lanes stored and other lanes do not see yet.
#pragma once
#include <cstdint>

namespace cuda_emulated {

struct Warp;

struct DelayedStore {
  uint8_t* to;
  uint64_t value;  // its low bytes
  uint32_t size;
};
// Some stores of the warp's lanes, running or not, go to memory.
void settle_by_chance(Warp& warp);

}  // namespace cuda_emulated
