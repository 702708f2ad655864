// The kernel for modules without micro-ops of shape kVector.
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxThreads<false>, 1)
    simulate(const __grid_constant__ Launch launch) {
  simulate_slice<false, DeviceView>(launch);
}

Kernel kernel_without_vectors() { return {simulate, kMaxThreads<false>}; }

}  // namespace gpusim::cuda
