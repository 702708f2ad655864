#pragma once
#include "translator/common/debug_registers.h"

namespace gpusim::riscv {

/// `xlen`: 32 or 64.
DebugTarget debug_target(uint32_t xlen);

}  // namespace gpusim::riscv
