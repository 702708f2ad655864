#pragma once
#include "translator/common/debug_registers.h"

namespace gpusim::a64 {

DebugTarget debug_target();

}  // namespace gpusim::a64
