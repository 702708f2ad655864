// One `gpusim run`: from options to an exit status.
#pragma once
#include "host/options.h"

namespace gpusim::host {

// Runs the guest and returns the process's exit status. Throws gpusim::Error or
// std::runtime_error for what is not the guest's doing.
int simulate(const RunOptions& options);

}  // namespace gpusim::host
