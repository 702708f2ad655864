// The kernel for modules with warps, on a caller's memory.
#include "device_sim/cuda/in_step.cuh"
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxWarpsThreads, 1)
    simulate_warps_in_place(const __grid_constant__ Launch launch) {
  simulate_warps_slice<InPlaceView>(launch);
}

Kernel kernel_of_warps_in_place() { return {simulate_warps_in_place, kMaxWarpsThreads}; }

}  // namespace gpusim::cuda
