// A sensor's updates beside a reference's mean power: what fits of a sensor's model compare.
#pragma once
#include <vector>

#include "energy/power/calibrate.h"

namespace gpusim::power {

// Readings as gain * truth + offset, by least squares over the readings.
struct Line {
  double gain = 1, offset = 0, rms = 0;  // rms in watts of the readings
};
// A sensor that is off by more than a factor of two is taken for one that does not follow the
// reference: the gain stays within it.
inline constexpr double kLeastGain = 0.5, kMostGain = 2;
Line fit_line(const std::vector<double>& truth, const std::vector<double>& readings);

double rms_between(const std::vector<double>& a, const std::vector<double>& b);

// Updates are seen by the first poll after them, up to a poll late; a sensor's own clock is even.
// Each time is moved onto the line through its neighbours' times over their numbers.
std::vector<Sample> with_even_times(const std::vector<Sample>& updates, Seconds period);

class Comparison {
 public:
  // `updates` must outlive this. At most `most_used` are used, evenly spread over those whose time
  // lies within the reference whatever the clocks' offset, up to `most_offset`.
  Comparison(const std::vector<Sample>& updates, const Trace& reference, Seconds period,
             Seconds most_offset, size_t most_used = ~size_t{0});
  const std::vector<size_t>& used() const { return used_; }
  std::vector<double> readings() const;
  // The reference's mean over the `window` up to each update used, for an offset of the clocks.
  std::vector<double> means(Seconds offset, Seconds window) const;

 private:
  double energy_at(double time) const;

  const std::vector<Sample>& updates_;
  double begin_ = 0, step_ = 0, lead_ = 0, trail_ = 0;
  std::vector<double> energy_;
  std::vector<size_t> used_;
};

// Window, gain, offset and delay together, over the whole recording.
ModelFit fit_window(const std::vector<Sample>& updates, const Trace& reference, Seconds period,
                    Seconds most_offset);

}  // namespace gpusim::power
