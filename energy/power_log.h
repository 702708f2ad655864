// Logs of a Corsair power supply, as the thesis used them (section 6.1.2, 6.1.3): commas both
// separate the columns and stand for the decimal point.
//
//   15.7.2013 11:36:16,20,7W,89,8766315921014,151,9921875,136,605458408151
#pragma once
#include <string>
#include <vector>

#include "energy/units.h"

namespace gpusim::energy {

struct PowerSample {
  Seconds time;           // since the first one
  Watts supplementary;    // to the GPU, past the main board
  double efficiency = 0;  // of the supply, per cent
  Watts in, out;
};

// Throws Error with the line's number.
std::vector<PowerSample> parse_power_log(const std::string& text, const std::string& origin);

struct PowerSummary {
  Seconds duration;
  Watts mean_in, mean_out, mean_supplementary;  // over time
  Joules in, out, supplementary;                // trapezoids between samples
};
PowerSummary summarize(const std::vector<PowerSample>& log);

}  // namespace gpusim::energy
