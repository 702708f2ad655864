// A sensor's constants from recordings: C from steps of load (Burtscher et al., section 5), or C,
// window, gain and offset against a reference whose readings are true.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "energy/power/curve.h"
#include "energy/power/sensor_profile.h"
#include "energy/power/trace.h"
#include "energy/power/updates.h"

namespace gpusim::power {

// A stretch of readings that follows A + K exp(-t / C) after a step of the true power.
struct StepFit {
  Seconds begin, end;  // of the readings that were fitted
  Watts from, to;      // reading before the step; asymptote A
  Seconds capacitance;
  Watts rms;  // of the fit
  size_t updates = 0;
  bool is_ramp = false;  // it rises evenly: a window, not a capacitor
  Seconds ramp;          // from the old level to the new one
};

// Steps of at least a tenth of the whole range.
std::vector<StepFit> fit_steps(const std::vector<Sample>& updates);

// C that makes the profile's slope formula exact on A + K exp(-t / tau) with updates `period`
// apart: period / sinh(period / tau), symmetric; period / (exp(period / tau) - 1), backward.
Seconds capacitance_for(Slope slope, Seconds tau, Seconds period);

struct ModelFit {
  Seconds capacitance;   // 0 where the model has none
  Seconds window;        // 0 where the model has none
  Seconds clock_offset;  // reference time = reading's time + this, delay of the sensor included
  double gain = 1;       // reading = gain * reference + offset
  Watts offset;
  Watts rms;                          // error against the reference, over all updates
  Seconds window_least, window_most;  // windows in between fit hardly worse (rms up to 1.1 times)
  Watts new_rms;                      // over those that brought a new value: where something moved
};

struct ReferenceFit {
  ModelFit symmetric, backward, window;
  Watts raw_rms;          // of readings as they are, with gain and offset, at the better model's
                          // clock offset
  Watts raw_new_rms;      // over those that brought a new value
  Watts raw_rms_aligned;  // the same at its own best clock offset
  Watts unscaled_rms;     // without gain and offset, too
  size_t updates = 0, new_values = 0;
  bool is_smoothed() const;  // a capacitor explains the readings better than a window does
  const ModelFit& best_slope() const { return backward.rms < symmetric.rms ? backward : symmetric; }
  const ModelFit& best() const { return is_smoothed() ? best_slope() : window; }
};

// Compares updates with the reference's mean over the time since the update before.
// Gain, offset, lag or window, and the clocks' offset are fitted together over the whole recording:
// no part of it need be quiet. `most_offset`: how far the two clocks may be apart. Throws
// Error where the recordings do not overlap, or readings do not follow the reference.
ReferenceFit fit_reference(const Trace& trace, const Trace& reference, Seconds most_offset);

struct Calibration {
  SensorProfile profile;
  std::optional<UpdatePeriod> period;
  std::vector<StepFit> steps;
  std::optional<ReferenceFit> reference;
  std::vector<Sample> updates;  // of the recording, on its own clock
};

struct CalibrateOptions {
  std::optional<Slope> slope;  // default: the better one with a reference, else symmetric
  bool has_one_clock = false;  // recording and reference share one: their offset is the delay
  Seconds most_offset{0.5};
  std::string name;
};

Calibration calibrate(const Trace& trace, const std::optional<Trace>& reference,
                      const CalibrateOptions& options);

// What was found, for people.
std::string calibration_text(const Calibration& calibration);

Curve curve_of(const std::vector<Sample>& samples);

}  // namespace gpusim::power
