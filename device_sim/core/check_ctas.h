// Machines of CTAs (core/cta.h) that are refused.
#pragma once
#include "device_sim/core/backend.h"

namespace gpusim {

// Part of Backend::configure(): throws where a machine of CTAs is not as core/cta.h says, or is
// none and the module needs one.
void check_ctas(const Module& module, const MachineConfig& config);

}  // namespace gpusim
