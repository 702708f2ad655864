// A sensor's updates among readings that repeat them.
#pragma once
#include <optional>
#include <vector>

#include "energy/power/sensor_profile.h"
#include "energy/power/trace.h"

namespace gpusim::power {

struct UpdatePeriod {
  Seconds period, spread;      // mean and standard deviation of the intervals that were kept
  Seconds error;               // of the mean: spread / sqrt(intervals)
  size_t intervals = 0;        // between changes of value
  size_t dropped = 0;          // twice or more the usual: the value had not changed (paper: 0.5 %)
  Seconds poll;                // median time between readings: how well an update's time is known
  bool is_every_poll = false;  // values change as fast as they were read: the period may be shorter
};

// Lang and Ruenger, section 3.2: times between changes of value; those of two or more periods,
// where an update brought the same value, are left out. nullopt with fewer than 3 changes.
std::optional<UpdatePeriod> measure_update_period(const std::vector<Sample>& samples);

// One sample per update: repetitions are removed. With profile.duplicate_gap, consecutive samples
// of one value no further apart than it (Burtscher et al., section 5); else a value that stays
// counts once per update period, which is measured where the profile has none.
std::vector<Sample> distinct_updates(const std::vector<Sample>& samples,
                                     const SensorProfile& profile);

}  // namespace gpusim::power
