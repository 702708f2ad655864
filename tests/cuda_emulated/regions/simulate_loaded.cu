// Kernels with loaded regions.
#include "regions/loaded_kernels.h"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded(const __grid_constant__ Launch launch) {
  simulate_slice<false, DeviceView, LoadedRegions>(launch);
}
__global__ void __launch_bounds__(kMaxCompiledThreads, 1)
    simulate_loaded_vectors(const __grid_constant__ Launch launch) {
  simulate_slice<true, DeviceView, LoadedRegions>(launch);
}

__global__ void __launch_bounds__(kMaxCompiledThreads)
    simulate_loaded_alone(const __grid_constant__ Launch launch) {
  run_regions<DeviceView, LoadedRegions>(launch);
}

Kernel kernel_of_loaded_regions() { return {simulate_loaded_alone, kMaxCompiledThreads}; }
Kernel kernel_with_loaded_regions(bool has_vectors) {
  return {has_vectors ? simulate_loaded_vectors : simulate_loaded, kMaxCompiledThreads};
}

}  // namespace gpusim::cuda
