// Regions of a shared library that was made at run time, as kernels call them; for each way to
// reach memory a source file has its kernels.
#pragma once
#include "device_sim/cuda/region_kernel.cuh"
#include "regions/loaded_regions.h"

namespace gpusim::cuda {

struct LoadedRegions {
  static constexpr bool kPresent = true;
  // In the kernel with the interpreter, whose contexts are in shared memory, and in the other.
  template <class View, class Counter>
  static uint32_t run(uint32_t region, uint32_t at, SharedContext& slots, const View& memory,
                      uint32_t core, int32_t& left, uint32_t& depth, Counter& counter) {
    const int32_t before = left;
    const uint32_t next = call(
        {region, at, core, &memory, slots.first(), blockDim.x, &left, &depth, &counter}, counter);
    cuda_emulated::note_region(static_cast<uint64_t>(before - left), next != at, false);
    return next;
  }
  template <class View, class Counter>
  static uint32_t run(uint32_t region, uint32_t at, StoredContext& slots, const View& memory,
                      uint32_t core, int32_t& left, uint32_t& depth, Counter& counter) {
    const int32_t before = left;
    const uint32_t next =
        call({region, at, core, &memory, slots.first(), slots.pitch(), &left, &depth, &counter},
             counter);
    cuda_emulated::note_region(static_cast<uint64_t>(before - left), next != at, true);
    return next;
  }

 private:
  template <class Counter>
  static uint32_t call(cuda_emulated::RegionCall call, Counter& counter) {
    call.count = [](void* its_counter, uint32_t block, uint32_t times) {
      static_cast<Counter*>(its_counter)->count(block, times);
    };
    const auto entry =
        reinterpret_cast<cuda_emulated::RegionEntry>(const_cast<void*>(counter.region_code()));
    return entry(call);
  }
};

Kernel kernel_with_loaded_regions(bool has_vectors);
Kernel kernel_in_place_with_loaded_regions(bool has_vectors);
// Without the interpreter.
Kernel kernel_of_loaded_regions();
Kernel kernel_in_place_of_loaded_regions();

}  // namespace gpusim::cuda
