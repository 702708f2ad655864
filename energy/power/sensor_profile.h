// What is known of one device's power sensor. A JSON file (`gpusim power calibrate`, `sensor`), or
// a preset.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "energy/power/sample.h"

namespace gpusim::power {

// How dP/dt is taken from neighbouring updates.
enum class Slope {
  kSymmetric,  // (P[i+1] - P[i-1]) / (t[i+1] - t[i-1]), Burtscher et al., section 5
  kBackward,   // (P[i] - P[i-1]) / (t[i] - t[i-1]): exact for a sensor that smooths once per update
};

struct SensorProfile {
  std::string name;
  Seconds capacitance;               // C of P + C dP/dt; 0: readings are not smoothed
  Slope slope = Slope::kSymmetric;   // the one that C was fitted with
  unsigned slope_points = 3;         // more than 3: a parabola through that many updates
  std::optional<Watts> active_idle;  // what the device draws between kernels
  std::optional<Seconds> update_period;
  // Same values no further apart than this are one update (the K20's 4 ms, for polls that are much
  // faster). Without it, by the update period.
  std::optional<Seconds> duplicate_gap;
  Seconds window;   // a reading is the mean over this time before it
  Seconds delay;    // a reading's time less what it is about, window aside
  double gain = 1;  // reading = gain * power + offset
  Watts offset;
  std::vector<std::string> notes;  // how it was found, and how well
};

// "k20": C = 0.84 s, active idle 52.5 W, updates 15 ms apart, same values within 4 ms are one
// (Burtscher et al., sections 4.3, 5, 6.1). "none": readings are taken as they are.
// Anything else is a file. Throws Error.
SensorProfile find_sensor_profile(const std::string& name_or_path);
SensorProfile parse_sensor_profile(const std::string& json, const std::string& origin);
std::string sensor_profile_json(const SensorProfile& profile);

}  // namespace gpusim::power
