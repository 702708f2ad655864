// Floating-point micro-ops that the machine has an instruction for, where the state word asks for
// nothing special. Where a result is inexact, an instruction raises the machine's exception, and
// nowhere else.
#pragma once
#include <optional>

#include "device_sim/native/domain.h"

namespace gpusim::native {

// The result, if it is one of these; values that the machine treats in its own way go the cold way.
std::optional<Domain::V> machine_float(const Uop& u, const Domain::V& a, const Domain::V& b,
                                       const Domain::V& c);

}  // namespace gpusim::native
