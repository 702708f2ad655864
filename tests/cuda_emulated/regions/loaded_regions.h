// Regions of a shared library, called from the emulated kernel.
#pragma once
#include <cstdint>

namespace cuda_emulated {

struct RegionCall {
  uint32_t region, at, core;
  const void* memory;  // a View
  uint64_t* slots;     // slot i is slots[i * pitch]
  uint32_t pitch;
  int32_t* left;
  uint32_t* depth;
  void* warp;
  void (*count)(void* warp, uint32_t block, uint32_t times);
};
using RegionEntry = uint32_t (*)(const RegionCall&);
// A region was entered, and left after so many instructions.
void note_region(uint64_t instructions);
inline constexpr char kRegionEntry[] = "gpusim_region_entry";

}  // namespace cuda_emulated
