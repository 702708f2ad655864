// Who waits where, for a run in which nobody can go on.
#pragma once
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"
#include "host/run/call_frames.h"

namespace gpusim::host {

// Lines for the user. Threads that wait in the same place for the same thing share one, and their
// call stack; those that have no core are among them.
std::vector<std::string> describe_waits(const Module& module, Backend& backend, Kernel& kernel,
                                        CallFrames& frames);
// The same, of those without a core alone.
std::vector<std::string> describe_threads_without_core(const Module& module, Backend& backend,
                                                       Kernel& kernel, CallFrames& frames);
// "core 3"; "cores 0-1 (2 cores) and 11 threads without a core (1003-1013)", by their numbers in
// the kernel; threads are named as gettid(2) does.
std::string thread_list(const Kernel& kernel, const std::vector<uint32_t>& numbers);

}  // namespace gpusim::host
