// One `gpusim run`: from options to an exit status.
#pragma once
#include "host/options.h"

namespace gpusim::host {

class Watch;

// Runs the guest and returns the process's exit status. Throws gpusim::Error or
// std::runtime_error for what is not the guest's doing.
int simulate(const RunOptions& options);
// The same, shown to `watch` while it runs.
int simulate(const RunOptions& options, Watch* watch);

}  // namespace gpusim::host
