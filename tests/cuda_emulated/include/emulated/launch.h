// Launches of kernels. The launch syntax of the language is not taken: it needs nvcc.
#pragma once
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulated/runtime.h"

namespace cuda_emulated {

struct Launch {
  const void* kernel;
  dim3 grid, block;
  size_t shared_bytes;
  std::function<void()> thread;  // what each thread does
};
cudaError_t enqueue(Launch launch, cudaStream_t stream);

// A device-wide algorithm of CUB or Thrust.
cudaError_t enqueue_algorithm(const char* what, std::function<void()> run, cudaStream_t stream);
// Its scratch memory: a first call with null says how much. False: `status` is the call's result.
bool has_scratch(const void* scratch, size_t& bytes, size_t items, cudaError_t& status);

}  // namespace cuda_emulated

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_emulated::enqueue(
      {reinterpret_cast<const void*>(kernel), config->gridDim, config->blockDim,
       config->dynamicSmemBytes,
       [kernel, values = std::tuple<std::decay_t<Parameters>...>(
                    std::forward<Arguments>(arguments)...)] { std::apply(kernel, values); }},
      config->stream);
}

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          void (*kernel)(Parameters...),
                                                          int threads, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}
