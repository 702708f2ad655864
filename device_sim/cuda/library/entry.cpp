// What the library shows.
#include "device_sim/cuda/library/device_library.h"

extern "C" const gpusim::cuda::DeviceFunctions* gpusim_cuda_device() {
  using namespace gpusim::cuda;
  static constexpr DeviceFunctions kFunctions{.layout = kLayout,
                                              .available = available,
                                              .device_name = device_name,
                                              .devices = devices,
                                              .create = create,
                                              .create_space = create_space,
                                              .reset = reset};
  return &kFunctions;
}
