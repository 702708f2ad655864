// Linux arm64.
#pragma once
#include "host/linux/abi.h"

namespace gpusim::host::aarch64 {

extern const LinuxAbi kAbi;

}  // namespace gpusim::host::aarch64
