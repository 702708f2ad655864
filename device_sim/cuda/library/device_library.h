// The CUDA backend as a shared library, for processes in which other functions have the names of
// CUDA's (host/cuda_api). Both sides are of one build. ADR 0062 says why.
#pragma once
#include <cstddef>

#include "device_sim/core/backend.h"
#include "device_sim/cuda/cuda_backend.h"

namespace gpusim::cuda {

// The functions of cuda_backend.h.
struct DeviceFunctions {
  size_t layout = 0;  // kLayout, or the library is of another build
  bool (*available)(std::string* why_not) = nullptr;
  std::string (*device_name)() = nullptr;
  std::vector<DeviceInfo> (*devices)() = nullptr;
  std::unique_ptr<Backend> (*create)(std::span<const uint32_t> devices) = nullptr;
  std::unique_ptr<LinearSpace> (*create_space)(const LinearSpaceRequest& request) = nullptr;
  bool (*reset)(std::string* why_not) = nullptr;
};
inline constexpr size_t kLayout =
    sizeof(MachineConfig) << 32 | sizeof(Module) << 16 | sizeof(DeviceFunctions);

// Of the library, by this name: const DeviceFunctions* gpusim_cuda_device().
inline constexpr const char* kDeviceLibraryEntry = "gpusim_cuda_device";
// In the environment: the library, and NVIDIA's driver, each by its path.
inline constexpr const char* kDeviceLibraryVariable = "GPUSIM_CUDA_DEVICE_LIBRARY";
inline constexpr const char* kDriverVariable = "GPUSIM_CUDA_DRIVER";

}  // namespace gpusim::cuda
