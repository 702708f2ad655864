// Comparisons of methods, for people and programs.
#pragma once
#include <string>

#include "energy/power/compare.h"

namespace gpusim::power {

// A row for each name; errors against the truth where there is one, else against MTSM.
std::string comparison_table(const Comparison& comparison);
// A line for each interval.
std::string interval_table(const Comparison& comparison);
// Everything: figures of each interval and name, in joules.
std::string comparison_json(const Comparison& comparison);

}  // namespace gpusim::power
