// Kernels whose regions lie in a shared library that was made at run time.
#include <cstdio>
#include <cstdlib>

#include "device_sim/cuda/kernel.cuh"
#include "regions/loaded_kernels.h"
#include "regions/loaded_regions.h"

namespace gpusim::cuda {
namespace {

// What regions executed. A test may say how much that is at least: the process fails with less.
struct Ledger {
  uint64_t entered = 0, instructions = 0;
  ~Ledger() {
    const char* const least = std::getenv("GPUSIM_EMULATED_REGIONS_LEAST");
    if (!least) return;
    if (instructions >= std::strtoull(least, nullptr, 10)) return;
    std::fprintf(stderr, "regions were entered %llu times and executed %llu instructions\n",
                 static_cast<unsigned long long>(entered),
                 static_cast<unsigned long long>(instructions));
    std::_Exit(1);
  }
};
Ledger ledger;

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
    ++ledger.entered;
    ledger.instructions += static_cast<uint64_t>(before - left);
    return next;
  }
};

}  // namespace

__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded(const __grid_constant__ Launch launch) {
  simulate_slice<false, DeviceView, LoadedRegions>(launch);
}
__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded_vectors(const __grid_constant__ Launch launch) {
  simulate_slice<true, DeviceView, LoadedRegions>(launch);
}

Kernel kernel_with_loaded_regions(bool has_vectors) {
  return {has_vectors ? simulate_loaded_vectors : simulate_loaded, kMaxCompiledThreads};
}

}  // namespace gpusim::cuda
