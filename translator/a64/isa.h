// AArch64 as a guest ISA: what the list of ISAs takes up.
#pragma once
#include "translator/common/guest_isa.h"

namespace gpusim::a64 {

extern const GuestIsa kIsa;

}  // namespace gpusim::a64
