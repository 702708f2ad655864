// Cores as CUDA threads. This header is plain C++: callers need no CUDA toolkit.
#pragma once
#include "device_sim/core/devices.h"

namespace gpusim::cuda {

// False, with a reason, when no usable device or driver is there.
bool available(std::string* why_not);
std::string device_name();  // of the first that can be used
std::vector<DeviceInfo> devices();
// As make_backend_on().
std::unique_ptr<Backend> create(std::span<const uint32_t> devices);

}  // namespace gpusim::cuda
