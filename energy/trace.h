// The per-kernel trace of the thesis (section 6.1.3): a line with the kernel's name, then lines of
// class and count. Classes that do not occur are left out.
//
//   Kernel name: _Z9transposeIjEvPT_jS1_j10NcvSize32u
//   Integer_arithmetic: 9041472
//   Memory_offchip: 526338
#pragma once
#include <string>
#include <vector>

#include "energy/activity.h"

namespace gpusim::energy {

// A kernel that ran several times stands there several times. Empty lines are skipped. Throws
// Error with the line's number.
std::vector<ActivityPart> parse_trace(const std::string& text, const std::string& origin);
std::string trace_text(const std::vector<ActivityPart>& kernels);
Activity activity_of_trace(std::vector<ActivityPart> kernels, const std::string& name);

}  // namespace gpusim::energy
