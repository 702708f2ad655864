#include "energy/power/comparison.h"

#include <algorithm>
#include <cmath>

namespace gpusim::power {

Line fit_line(const std::vector<double>& truth, const std::vector<double>& readings) {
  const double n = static_cast<double>(truth.size());
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < truth.size(); ++i) mx += truth[i] / n, my += readings[i] / n;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double x = truth[i] - mx, y = readings[i] - my;
    xx += x * x, xy += x * y, yy += y * y;
  }
  Line line;
  line.gain = std::clamp(xx > 0 ? xy / xx : 1.0, kLeastGain, kMostGain);
  line.offset = my - line.gain * mx;
  line.rms = std::sqrt(std::max(0.0, yy - 2 * line.gain * xy + line.gain * line.gain * xx) / n);
  return line;
}

double rms_between(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

std::vector<Sample> with_even_times(const std::vector<Sample>& updates, Seconds period) {
  constexpr size_t kNeighbours = 10;  // to each side
  std::vector<double> number(updates.size());
  for (size_t i = 1; i < updates.size(); ++i)
    number[i] = number[i - 1] + std::round((updates[i].time - updates[i - 1].time) / period);
  std::vector<Sample> even = updates;
  for (size_t i = 0; i < updates.size(); ++i) {
    const size_t first = i < kNeighbours ? 0 : i - kNeighbours;
    const size_t last = std::min(i + kNeighbours, updates.size() - 1);
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t k = first; k <= last; ++k) {
      const double later = number[k] - number[i];
      const double late = (updates[k].time - updates[i].time).value();
      n += 1, x += later, y += late;
      xx += later * later, xy += later * late;
    }
    const double d = n * xx - x * x;
    if (d > 0) even[i].time += Seconds((y * xx - x * xy) / d);
  }
  return even;
}

Comparison::Comparison(const std::vector<Sample>& updates, const Trace& reference, Seconds period,
                       Seconds most_offset, size_t most_used)
    : updates_(updates) {
  const Seconds begin = reference.samples.front().time, end = reference.samples.back().time;
  // Energy from the beginning, at even steps: looked up millions of times.
  constexpr double kFinest = 0.00025, kMostSteps = 4e6;
  const Curve truth = curve_of(reference.samples);
  begin_ = begin.value();
  step_ = std::max(kFinest, (end - begin).value() / kMostSteps);
  for (double t = 0; t < (end - begin).value() + 2 * step_; t += step_)
    energy_.push_back(truth.energy(begin, Seconds(begin_ + t)).value());
  const Seconds edge = std::min(Seconds(0.05), end - begin);
  lead_ = (truth.energy(begin, begin + edge) / edge).value();
  trail_ = (truth.energy(end - edge, end) / edge).value();
  for (size_t i = 1; i + 1 < updates.size(); ++i) {
    const Seconds t = updates[i].time;
    if (t - period - most_offset > begin && t + most_offset < end) used_.push_back(i);
  }
  const size_t all = used_.size();
  if (all <= most_used) return;
  for (size_t n = 0; n < most_used; ++n) used_[n] = used_[n * all / most_used];
  used_.resize(most_used);
}

std::vector<double> Comparison::readings() const {
  std::vector<double> values;
  for (const size_t i : used_) values.push_back(updates_[i].power.value());
  return values;
}

std::vector<double> Comparison::means(Seconds offset, Seconds window) const {
  std::vector<double> values;
  values.reserve(used_.size());
  for (const size_t i : used_) {
    const double t = (updates_[i].time + offset).value();
    values.push_back((energy_at(t) - energy_at(t - window.value())) / window.value());
  }
  return values;
}

double Comparison::energy_at(double time) const {
  // Beyond the ends power is as it was there.
  const double since = time - begin_, at = since / step_;
  if (since < 0) return since * lead_;
  const size_t last = energy_.size() - 1;
  if (at >= static_cast<double>(last))
    return energy_[last] + (at - static_cast<double>(last)) * step_ * trail_;
  const auto i = static_cast<size_t>(at);
  return energy_[i] + (energy_[i + 1] - energy_[i]) * (at - static_cast<double>(i));
}

}  // namespace gpusim::power
