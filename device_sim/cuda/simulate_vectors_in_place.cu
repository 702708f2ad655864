// The kernel for modules with micro-ops of shape kVector, on a caller's memory.
#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxThreads<true>, 1)
    simulate_vectors_in_place(const __grid_constant__ Launch launch) {
  simulate_slice<true, InPlaceView>(launch);
}

Kernel kernel_in_place_with_vectors() { return {simulate_vectors_in_place, kMaxThreads<true>}; }

}  // namespace gpusim::cuda
