// The system call riscv_hwprobe: which extensions the processors have (Linux 6.4 on).
#pragma once
#include "host/linux/kernel.h"

namespace gpusim::host::riscv64 {

Reply hwprobe(Kernel& kernel, Call& call);

}  // namespace gpusim::host::riscv64
