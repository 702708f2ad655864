// The kernels of simulate_loaded.cu.
#pragma once
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

Kernel kernel_with_loaded_regions(bool has_vectors);

}  // namespace gpusim::cuda
