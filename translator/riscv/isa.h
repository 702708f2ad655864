// RISC-V as a guest ISA: what the list of ISAs takes up.
#pragma once
#include "translator/common/guest_isa.h"

namespace gpusim::riscv {

extern const GuestIsa kIsa;    // RV64
extern const GuestIsa kIsa32;  // RV32

}  // namespace gpusim::riscv
