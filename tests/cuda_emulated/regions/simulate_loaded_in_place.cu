// Kernels with loaded regions, on a caller's memory.
#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#include "regions/loaded_kernels.h"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded_in_place(const __grid_constant__ Launch launch) {
  simulate_slice<false, InPlaceView, LoadedRegions>(launch);
}
__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded_vectors_in_place(const __grid_constant__ Launch launch) {
  simulate_slice<true, InPlaceView, LoadedRegions>(launch);
}

__global__ void __launch_bounds__(kMaxCompiledThreads)
    simulate_loaded_alone_in_place(const __grid_constant__ Launch launch) {
  run_regions<InPlaceView, LoadedRegions>(launch);
}

Kernel kernel_in_place_of_loaded_regions() {
  return {simulate_loaded_alone_in_place, kMaxCompiledThreads};
}
Kernel kernel_in_place_with_loaded_regions(bool has_vectors) {
  return {has_vectors ? simulate_loaded_vectors_in_place : simulate_loaded_in_place,
          kMaxCompiledThreads};
}

}  // namespace gpusim::cuda
