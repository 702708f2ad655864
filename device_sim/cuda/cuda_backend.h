// Cores as CUDA threads. This header is plain C++: callers need no CUDA toolkit.
#pragma once
#include "device_sim/core/devices.h"
#include "device_sim/core/linear_space.h"

namespace gpusim::cuda {

// False, with a reason, when no usable device or driver is there.
bool available(std::string* why_not);
std::string device_name();  // of the first that can be used
std::vector<DeviceInfo> devices();
// As make_backend_on().
std::unique_ptr<Backend> create(std::span<const uint32_t> devices);
// As make_linear_space(), for machines that create() makes of the same device.
std::unique_ptr<LinearSpace> create_space(const LinearSpaceRequest& request);
// As reset_device(), of the device that create({}) chooses.
bool reset(std::string* why_not);

}  // namespace gpusim::cuda
