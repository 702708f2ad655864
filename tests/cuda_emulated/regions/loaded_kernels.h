// Regions of a shared library that was made at run time, as kernels call them; for each way to
// reach memory a source file has its kernels.
#pragma once
#include "device_sim/cuda/kernel.cuh"
#include "regions/loaded_regions.h"

namespace gpusim::cuda {

struct LoadedRegions {
  static constexpr bool kPresent = true;
  template <class View>
  static uint32_t run(uint32_t region, uint32_t at, SharedContext& slots, const View& memory,
                      uint32_t core, int32_t& left, uint32_t& depth, Warp& warp) {
    const auto entry =
        reinterpret_cast<cuda_emulated::RegionEntry>(const_cast<void*>(warp.region_code()));
    const int32_t before = left;
    const uint32_t next = entry({region, at, core, &memory, slots.first(), blockDim.x, &left,
                                 &depth, &warp, [](void* its_warp, uint32_t block, uint32_t times) {
                                   static_cast<Warp*>(its_warp)->count(block, times);
                                 }});
    cuda_emulated::note_region(static_cast<uint64_t>(before - left));
    return next;
  }
};

Kernel kernel_with_loaded_regions(bool has_vectors);
Kernel kernel_in_place_with_loaded_regions(bool has_vectors);

}  // namespace gpusim::cuda
