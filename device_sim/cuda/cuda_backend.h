// Cores as CUDA threads. This header is plain C++: callers need no CUDA toolkit.
#pragma once
#include "device_sim/core/backend.h"

namespace gpusim::cuda {

// False, with a reason, when no usable device or driver is there.
bool available(std::string* why_not);
std::string device_name();
std::unique_ptr<Backend> create();

}  // namespace gpusim::cuda
