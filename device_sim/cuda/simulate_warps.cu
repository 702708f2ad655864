// The kernel for modules with warps.
#include "device_sim/cuda/in_step.cuh"
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxWarpsThreads, 1)
    simulate_warps(const __grid_constant__ Launch launch) {
  simulate_warps_slice<DeviceView>(launch);
}

Kernel kernel_of_warps() { return {simulate_warps, kMaxWarpsThreads}; }

}  // namespace gpusim::cuda
