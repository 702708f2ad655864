// Regions of a shared library, called from the emulated kernel.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_emulated {

struct RegionCall {
  uint32_t region, at, core;
  const void* memory;  // a View
  uint64_t* slots;     // slot i is slots[i * pitch]
  size_t pitch;
  int32_t* left;
  uint32_t* depth;
  void* counter;
  void (*count)(void* counter, uint32_t block, uint32_t times) = nullptr;
};
using RegionEntry = uint32_t (*)(const RegionCall&);
// A region was entered, and left after so many instructions (ends of blocks), elsewhere or where it
// was entered; in a kernel without the interpreter.
void note_region(uint64_t instructions, bool has_moved, bool is_alone);
inline constexpr char kRegionEntry[] = "gpusim_region_entry";

}  // namespace cuda_emulated
