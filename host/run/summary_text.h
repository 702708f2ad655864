// What a run says of itself at its end, on standard error.
#pragma once
#include <string>

#include "host/stats.h"

namespace gpusim::host {

std::string summary_text(const RunSummary& summary);

}  // namespace gpusim::host
