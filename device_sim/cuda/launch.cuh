// Checked kernel launches, as calls of a function: a host compiler takes them as they stand.
#pragma once
#include <cstdint>

#include "device_sim/cuda/device_array.cuh"

namespace gpusim::cuda {

// On the default stream. `what` names the work in the message of a failure.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), uint32_t blocks, uint32_t threads, size_t shared_bytes,
            const char* what, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), what);
}

}  // namespace gpusim::cuda
