// True power and energy from what a smoothing sensor says: Burtscher et al., section 5.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "energy/power/sensor_profile.h"
#include "energy/power/trace.h"

namespace gpusim::power {

struct Stretch {  // of time above the threshold
  Seconds begin, end;
  Joules energy;
};

struct Correction {
  std::vector<Sample> updates;     // readings without repetitions, at the times they are about
  std::vector<Sample> true_power;  // one per update; W
  Watts threshold;                 // 0: all that was recorded counts
  std::vector<Stretch> active;     // above the threshold
  Seconds active_time;
  Joules energy;      // of true power, over `active`
  Joules above_idle;  // the same, less the active-idle level
  Joules as_read;     // of the readings as they are, over the whole recording
  Seconds skipped;    // gaps, across which nothing is integrated
  std::vector<std::string> notes;
};

// 1. removes repetitions (updates.h); 2. P(t) + C dP/dt from neighbouring updates and their time
// stamps, then gain and offset; times are moved back by the delay and half the window;
// 3. integrates, by trapezoids, what lies above the threshold: `threshold`, or 4 % above the
// profile's active-idle level, so that the wobble of that level does not count; or everything.
// Throws Error for fewer than 3 updates.
Correction correct(const Trace& trace, const SensorProfile& profile,
                   std::optional<Watts> threshold = std::nullopt);

// P + C dP/dt alone, for samples that are updates already, at their times.
std::vector<Sample> unsmooth(const std::vector<Sample>& updates, const SensorProfile& profile);

}  // namespace gpusim::power
