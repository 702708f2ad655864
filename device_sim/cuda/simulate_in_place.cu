// The kernel for modules without micro-ops of shape kVector, on a caller's memory.
#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxThreads<false>, 1)
    simulate_in_place(const __grid_constant__ Launch launch) {
  simulate_slice<false, InPlaceView>(launch);
}

Kernel kernel_in_place_without_vectors() { return {simulate_in_place, kMaxThreads<false>}; }

}  // namespace gpusim::cuda
