// Linux riscv, 64 bits.
#pragma once
#include "host/linux/abi.h"

namespace gpusim::host::riscv64 {

extern const LinuxAbi kAbi;

}  // namespace gpusim::host::riscv64
