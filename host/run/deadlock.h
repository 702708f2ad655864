// Who waits where, for a run in which nobody can go on.
#pragma once
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"
#include "host/run/call_frames.h"

namespace gpusim::host {

// Lines for the user. Cores that wait in the same place for the same thing share one, and their call
// stack.
std::vector<std::string> describe_waits(const Module& module, Backend& backend, Kernel& kernel,
                                        CallFrames& frames);

}  // namespace gpusim::host
