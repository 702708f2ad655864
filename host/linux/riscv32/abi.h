// Linux riscv, 32 bits: times of 64 bits alone, and no call that a newer one replaces.
#pragma once
#include "host/linux/abi.h"

namespace gpusim::host::riscv32 {

extern const LinuxAbi kAbi;

}  // namespace gpusim::host::riscv32
