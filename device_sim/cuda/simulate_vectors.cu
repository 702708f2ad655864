// The kernel for modules with micro-ops of shape kVector.
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxThreads<true>, 1)
    simulate_vectors(const __grid_constant__ Launch launch) {
  simulate_slice<true, DeviceView>(launch);
}

Kernel kernel_with_vectors() { return {simulate_vectors, kMaxThreads<true>}; }

}  // namespace gpusim::cuda
