// Who waits where, for a run in which nobody can go on.
#pragma once
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"

namespace gpusim::host {

// Lines for the user: cores that wait in the same place for the same thing share one. `program`:
// the file that tells source lines.
std::vector<std::string> describe_waits(const Module& module, Backend& backend,
                                        const Kernel& kernel, const std::string& program);

}  // namespace gpusim::host
