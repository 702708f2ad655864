// The kernel for modules with warps, on a caller's memory. It has textures and surfaces, whose
// descriptions and texels are in that memory.
// The host serves threads while others run, and other devices may have blocks of the same grid.
#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#include "device_sim/uir/textures/device.h"

#include "device_sim/cuda/device_array.cuh"
#include "device_sim/cuda/in_step.cuh"
#include "device_sim/cuda/kernel.cuh"
#include "device_sim/cuda/linear_space.cuh"

namespace gpusim::cuda {

__global__ void __launch_bounds__(kMaxWarpsThreads, 1)
    simulate_warps_in_place(const __grid_constant__ Launch launch) {
  simulate_warps_slice<InPlaceView>(launch);
}

Kernel kernel_of_warps_in_place() { return {simulate_warps_in_place, kMaxWarpsThreads}; }

void set_textures_in_place(uint64_t base) {
  check(cudaMemcpyToSymbol(device_textures, &base, sizeof base), "telling of textures");
}

}  // namespace gpusim::cuda
