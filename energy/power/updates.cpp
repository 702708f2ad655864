#include "energy/power/updates.h"

#include <algorithm>
#include <cmath>

namespace gpusim::power {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<UpdatePeriod> measure_update_period(const std::vector<Sample>& samples) {
  std::vector<double> polls, intervals;
  std::optional<double> last_change;
  for (size_t i = 1; i < samples.size(); ++i) {
    polls.push_back((samples[i].time - samples[i - 1].time).value());
    if (samples[i].power == samples[i - 1].power) continue;
    if (last_change) intervals.push_back(samples[i].time.value() - *last_change);
    last_change = samples[i].time.value();
  }
  if (intervals.size() < 2) return std::nullopt;
  UpdatePeriod found{.poll = Seconds(median(polls))};
  // Intervals are multiples of the period. Where most updates bring the same value as the one
  // before, the median is a multiple, too: the shorter ones tell.
  std::vector<double> sorted = intervals;
  std::sort(sorted.begin(), sorted.end());
  double usual = sorted[sorted.size() / 2];
  const double low = sorted[sorted.size() / 10];
  if (low < 0.6 * usual) {
    std::vector<double> short_ones;
    for (const double s : sorted)
      if (s < 1.5 * low) short_ones.push_back(s);
    if (short_ones.size() >= 3 && short_ones.size() * 10 >= sorted.size())
      usual = median(short_ones);
  }
  double sum = 0, squares = 0;
  size_t kept = 0;
  for (const double s : intervals) {
    if (s > 1.5 * usual || s < 0.5 * usual) {
      ++found.dropped;
      continue;
    }
    ++kept;
    sum += s;
    squares += s * s;
  }
  if (kept == 0) return std::nullopt;
  const double n = static_cast<double>(kept), mean = sum / n;
  found.intervals = kept;
  found.period = Seconds(mean);
  found.spread = Seconds(std::sqrt(std::max(0.0, squares / n - mean * mean)));
  found.error = found.spread / std::sqrt(n);
  found.is_every_poll = mean < 1.5 * found.poll.value();
  return found;
}

std::vector<Sample> distinct_updates(const std::vector<Sample>& samples,
                                     const SensorProfile& profile) {
  if (samples.empty()) return {};
  std::vector<Sample> kept = {samples.front()};
  if (profile.duplicate_gap) {
    for (size_t i = 1; i < samples.size(); ++i)
      if (samples[i].power != samples[i - 1].power ||
          samples[i].time - samples[i - 1].time > *profile.duplicate_gap)
        kept.push_back(samples[i]);
    return kept;
  }
  Seconds period = profile.update_period.value_or(Seconds(0));
  if (!profile.update_period)
    if (const auto measured = measure_update_period(samples)) period = measured->period;
  // A value that stayed for n periods was n updates; the readings nearest to their times stand for
  // them. None is taken just before a change, where it would make a steep slope.
  for (size_t i = 1; i < samples.size();) {
    size_t change = i;
    while (change < samples.size() && samples[change].power == kept.back().power) ++change;
    const Seconds since = kept.back().time;
    const Seconds until = change < samples.size() ? samples[change].time : samples.back().time;
    double next = 1;
    for (; i < change && period > Seconds(0); ++i) {
      if (samples[i].time < since + period * next) continue;
      if (change < samples.size() && until - samples[i].time < period * 0.5) break;
      kept.push_back(samples[i]);
      next = std::floor((samples[i].time - since) / period) + 1;
    }
    if (change < samples.size()) kept.push_back(samples[change]);
    i = change + 1;
  }
  return kept;
}

}  // namespace gpusim::power
