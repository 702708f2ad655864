// What different methods say of the energy of the same intervals in one recording (Arafa et al.,
// section IV; Burtscher et al., section 5; Lang and Ruenger).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "energy/power/curve.h"
#include "energy/power/sensor_profile.h"
#include "energy/power/trace.h"

namespace gpusim::power {

enum class Method {
  kSampling,      // SMA: readings every 15 ms; the pulse that an interval lies in, shared by time
  kOneReading,    // as PAPI: the reading at the end times the duration
  kSynchronized,  // MTSM: mean of the readings between begin and end, times the duration (Equation
                  // 2)
  kTrapezoid,     // of the readings, values between them interpolated
  kOverlaid,      // all launches of a name laid over each other by time since their beginning
  kCorrected,     // P + C dP/dt of the sensor's updates, with its profile
  kCounter,       // the device's own counter of energy
};
inline constexpr int kMethodCount = 7;
const char* key(Method method);    // "mtsm"
const char* title(Method method);  // "MTSM"
const char* about(Method method);  // a sentence

struct MethodFigure {
  std::optional<Joules> energy;  // nothing: it cannot say
  size_t readings = 0;           // that lie in the interval
};

struct IntervalEnergies {
  Interval interval;
  std::vector<MethodFigure> by_method;  // by Method
  std::optional<Joules> truth;

  const MethodFigure& of(Method m) const { return by_method[static_cast<size_t>(m)]; }
};

struct MethodOptions {
  SensorProfile profile;             // kCorrected; "none" takes readings at their times
  bool has_profile = false;          // else kCorrected is left out
  std::optional<Watts> active_idle;  // where SMA's pulses end; else found in the recording
  Seconds sampling{0.015};           // SMA's period: 66.7 Hz
};

struct Comparison {
  std::vector<IntervalEnergies> intervals;  // by their beginning
  Watts idle;                               // that SMA's threshold was taken from
  Watts threshold;
  std::vector<std::string> notes;
};

// Throws Error for a recording without samples or an interval that ends before it begins.
// `truth`: of simulated sensors, or an external meter's.
Comparison compare_methods(const Trace& trace, const std::vector<Interval>& intervals,
                           const MethodOptions& options, const Curve* truth = nullptr);

// All intervals of a name together, in order of their first.
struct NamedEnergies {
  std::string name;
  size_t count = 0;
  Seconds duration;                              // of all
  std::vector<std::optional<Joules>> by_method;  // sums; nothing where one of them has nothing
  std::optional<Joules> truth;
  size_t readings = 0;  // in all of them
};
std::vector<NamedEnergies> by_name(const Comparison& comparison);

}  // namespace gpusim::power
