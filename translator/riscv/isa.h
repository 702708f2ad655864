// RISC-V as a guest ISA: what the list of ISAs takes up.
#pragma once
#include "translator/common/guest_isa.h"

namespace gpusim::riscv {

extern const GuestIsa kIsa;

}  // namespace gpusim::riscv
