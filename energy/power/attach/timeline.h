// Calls, kernels, copies and power on one clock, as a trace that Perfetto and chrome://tracing open
// (thesis, section 3.3).
#pragma once
#include <string>
#include <vector>

#include "energy/power/attach/log_reader.h"
#include "energy/power/trace.h"

namespace gpusim::power::attach {

// Chrome's trace events: a process for the host (a track for each thread, runtime and driver calls
// nested) and one for each GPU (a track for each stream), and counters of watts. Times count from
// the first thing that happened. `truth` may be empty.
std::string timeline_json(const std::vector<ProcessLog>& logs, const Trace& trace,
                          const std::vector<Sample>& truth);

}  // namespace gpusim::power::attach
