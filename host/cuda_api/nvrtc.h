// NVRTC in programs: nvrtc.cpp.
#pragma once
#include "host/cuda_api/redirect.h"

namespace gpusim::cuda_api {

// Where a program carries NVRTC. To be called before it runs.
void use_nvrtc(const NvrtcInside& functions);

}  // namespace gpusim::cuda_api
