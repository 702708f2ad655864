// Registers of RISC-V in core files.
#pragma once
#include <vector>

#include "host/linux/abi.h"

namespace gpusim::host::riscv {

/// Word: of the guest's registers for integers.
template <class Word>
std::vector<CoreNote> core_notes();

}  // namespace gpusim::host::riscv
