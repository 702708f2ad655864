// What a sensor is like: how it answers, how often it has news, how it smooths, how far it is off.
#pragma once
#include <optional>
#include <string>

#include "energy/power/calibrate.h"

namespace gpusim::power {

struct SensorReport {
  std::string source;
  size_t readings = 0, values = 0;  // values: different ones
  Seconds poll_median, poll_least, poll_most;
  double repeats = 0;                      // readings per change of value
  Watts quantum;                           // the least difference of two values
  std::optional<Calibration> calibration;  // not where the readings hardly change
  std::string why_not;
};

SensorReport analyse_sensor(const Trace& trace, const std::optional<Trace>& reference,
                            const CalibrateOptions& options);
std::string sensor_report_text(const SensorReport& report);
std::string sensor_report_json(const SensorReport& report);

}  // namespace gpusim::power
