#include "energy/power/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "device_sim/base/error.h"
#include "energy/power/correct.h"
#include "energy/power/updates.h"

namespace gpusim::power {
namespace {

struct MethodText {
  const char *key, *title, *about;
};
constexpr MethodText kTexts[kMethodCount] = {
    {"sma", "SMA",
     "readings every 15 ms, the pulse above idle that the interval lies in, shared by "
     "time among the intervals of the pulse"},
    {"one_reading", "one reading",
     "as PAPI does: the reading at the interval's end, times its duration"},
    {"mtsm", "MTSM", "mean of the readings between begin and end, times the duration"},
    {"trapezoid", "trapezoid", "readings, interpolated, between begin and end"},
    {"overlaid", "overlaid",
     "readings of all launches of one name laid over each other by the time "
     "since their beginning, trapezoids"},
    {"corrected", "corrected", "P + C dP/dt of the sensor's updates, with the sensor's profile"},
    {"counter", "counter", "the device's counter of energy, interpolated"},
};

using Samples = std::vector<Sample>;

bool before(const Sample& s, Seconds t) { return s.time < t; }

// Index of the first sample at or after `t`.
size_t first_at(const Samples& samples, Seconds t) {
  return static_cast<size_t>(std::lower_bound(samples.begin(), samples.end(), t, before) -
                             samples.begin());
}

// The reading that was last before or at `t`; the first one where there is none.
const Sample& last_before(const Samples& samples, Seconds t) {
  const size_t i = first_at(samples, t);
  if (i < samples.size() && samples[i].time == t) return samples[i];
  return samples[i == 0 ? 0 : i - 1];
}

Joules counter_at(const Samples& samples, Seconds t) {
  const size_t i = first_at(samples, t);
  if (i == 0) return *samples.front().energy_total;
  if (i == samples.size()) return *samples.back().energy_total;
  const Sample &a = samples[i - 1], &b = samples[i];
  const double share = b.time > a.time ? (t - a.time) / (b.time - a.time) : 1;
  return *a.energy_total + (*b.energy_total - *a.energy_total) * share;
}

// The steps of a counter, without readings that only repeat it.
Samples counter_steps(const Samples& samples) {
  Samples steps;
  for (const Sample& s : samples)
    if (s.energy_total && (steps.empty() || *s.energy_total != *steps.back().energy_total))
      steps.push_back(s);
  return steps;
}

// Readings as a monitor of 66.7 Hz sees them.
Samples every(const Samples& samples, Seconds period) {
  Samples out;
  for (const Sample& s : samples)
    if (out.empty() || s.time - out.back().time >= period * 0.999) out.push_back(s);
  return out;
}

// Idle: what is read most of the time outside of intervals, or at least (a tenth from below).
Watts idle_level(const Samples& samples, const std::vector<Interval>& intervals) {
  std::vector<double> outside, all;
  for (const Sample& s : samples) {
    all.push_back(s.power.value());
    const bool is_inside = std::any_of(intervals.begin(), intervals.end(), [&](const Interval& i) {
      return s.time >= i.begin && s.time <= i.end;
    });
    if (!is_inside) outside.push_back(s.power.value());
  }
  std::vector<double>& from = outside.size() >= 5 ? outside : all;
  const size_t at = from.size() / 10;
  std::nth_element(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(at), from.end());
  return Watts(from[at]);
}

struct Pulse {
  Seconds begin, end;
  Joules energy;
};

std::vector<Pulse> pulses_of(const Samples& samples, Watts threshold) {
  std::vector<Pulse> pulses;
  for (size_t i = 0; i < samples.size();) {
    if (samples[i].power <= threshold) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < samples.size() && samples[end].power > threshold) ++end;
    const size_t from = i == 0 ? 0 : i - 1, to = std::min(end, samples.size() - 1);
    pulses.push_back({samples[from].time, samples[to].time,
                      trapezoid(samples, samples[from].time, samples[to].time)});
    i = end;
  }
  return pulses;
}

// Equation 2; without a reading inside, the last one before stands for all.
MethodFigure synchronized_energy(const Samples& samples, const Interval& i) {
  const size_t from = first_at(samples, i.begin);
  size_t to = from;
  Watts sum;
  while (to < samples.size() && samples[to].time <= i.end) sum += samples[to++].power;
  const Seconds duration = i.end - i.begin;
  if (to == from) return {last_before(samples, i.end).power * duration, 0};
  return {sum / static_cast<double>(to - from) * duration, to - from};
}

// Times since the beginning, of all intervals of a name that last about as long as their median.
struct Overlay {
  Seconds duration;
  Samples samples;
  size_t launches = 0;
};
std::map<std::string, Overlay> overlays_of(const Samples& updates,
                                           const std::vector<Interval>& all) {
  std::map<std::string, std::vector<const Interval*>> named;
  for (const Interval& i : all) named[i.name].push_back(&i);
  std::map<std::string, Overlay> overlays;
  for (auto& [name, list] : named) {
    std::vector<double> durations;
    for (const Interval* i : list) durations.push_back((i->end - i->begin).value());
    std::nth_element(durations.begin(),
                     durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2),
                     durations.end());
    Overlay& o = overlays[name];
    o.duration = Seconds(durations[durations.size() / 2]);
    for (const Interval* i : list) {
      if (std::abs((i->end - i->begin) / o.duration - 1) > 0.2) continue;
      ++o.launches;
      for (size_t k = first_at(updates, i->begin); k < updates.size() && updates[k].time <= i->end;
           ++k) {
        Sample s = updates[k];
        s.time = s.time - i->begin;
        o.samples.push_back(s);
      }
    }
    std::stable_sort(o.samples.begin(), o.samples.end(),
                     [](const Sample& a, const Sample& b) { return a.time < b.time; });
  }
  return overlays;
}

void check(const Trace& trace, const std::vector<Interval>& intervals) {
  if (trace.samples.empty())
    throw Error("the recording has no samples: there is nothing to compare");
  for (const Interval& i : intervals)
    if (i.end < i.begin) throw Error(fmt::format("the interval {} ends before it begins", i.name));
}

}  // namespace

const char* key(Method m) { return kTexts[static_cast<size_t>(m)].key; }
const char* title(Method m) { return kTexts[static_cast<size_t>(m)].title; }
const char* about(Method m) { return kTexts[static_cast<size_t>(m)].about; }

Comparison compare_methods(const Trace& trace, const std::vector<Interval>& intervals,
                           const MethodOptions& options, const Curve* truth) {
  check(trace, intervals);
  const Samples& samples = trace.samples;
  Comparison out;
  std::vector<Interval> sorted = intervals;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Interval& a, const Interval& b) { return a.begin < b.begin; });

  const Samples slow = every(samples, options.sampling);
  out.idle = options.active_idle ? *options.active_idle : idle_level(samples, sorted);
  out.threshold = out.idle * 1.04;  // as corrections take it (correct.h)
  const std::vector<Pulse> pulses = pulses_of(slow, out.threshold);
  // How much of each pulse intervals fill: what its energy is shared by.
  std::vector<Seconds> filled(pulses.size());
  const auto overlap = [](const Pulse& p, const Interval& i) {
    const Seconds from = std::max(p.begin, i.begin), to = std::min(p.end, i.end);
    return to > from ? to - from : Seconds(0);
  };
  for (const Interval& i : sorted)
    for (size_t p = 0; p < pulses.size(); ++p) filled[p] += overlap(pulses[p], i);

  Samples corrected;
  if (options.has_profile) {
    try {
      corrected = correct(trace, options.profile, Watts(0)).true_power;
    } catch (const Error& error) {
      out.notes.push_back(std::string("not corrected: ") + error.what());
    }
  }
  const Samples& best = corrected.empty() ? samples : corrected;
  const std::map<std::string, Overlay> overlays = overlays_of(best, sorted);
  const Samples steps = counter_steps(samples);

  size_t overlapping = 0;
  Seconds last_end(-1e300);
  for (const Interval& i : sorted) {
    overlapping += i.begin < last_end - Seconds(1e-9);
    last_end = std::max(last_end, i.end);
    IntervalEnergies e{i, std::vector<MethodFigure>(kMethodCount), {}};
    const auto set = [&](Method m, Joules energy, size_t readings) {
      e.by_method[static_cast<size_t>(m)] = {energy, readings};
    };
    const Seconds duration = i.end - i.begin;
    e.by_method[static_cast<size_t>(Method::kSynchronized)] = synchronized_energy(samples, i);
    const size_t readings = e.of(Method::kSynchronized).readings;
    set(Method::kOneReading, last_before(samples, i.end).power * duration, 1);
    set(Method::kTrapezoid, trapezoid(samples, i.begin, i.end), readings);
    Joules sampled;
    bool is_seen = false;
    for (size_t p = 0; p < pulses.size(); ++p)
      if (const Seconds part = overlap(pulses[p], i); part > Seconds(0)) {
        sampled += pulses[p].energy * (part / filled[p]);
        is_seen = true;
      }
    if (is_seen) set(Method::kSampling, sampled, readings);
    if (!corrected.empty()) set(Method::kCorrected, trapezoid(corrected, i.begin, i.end), readings);
    if (const Overlay& o = overlays.at(i.name); o.launches >= 2 && o.samples.size() >= 3)
      set(Method::kOverlaid, trapezoid(o.samples, Seconds(0), o.duration) * (duration / o.duration),
          o.samples.size());
    if (steps.size() >= 2 && i.begin >= steps.front().time && i.end <= steps.back().time)
      set(Method::kCounter, counter_at(steps, i.end) - counter_at(steps, i.begin), readings);
    if (truth != nullptr) e.truth = truth->energy(i.begin, i.end);
    out.intervals.push_back(std::move(e));
  }
  if (overlapping > 0)
    out.notes.push_back(fmt::format(
        "{} intervals overlap others: what ran at the same time is in the energy of both",
        overlapping));
  return out;
}

std::vector<NamedEnergies> by_name(const Comparison& comparison) {
  std::vector<NamedEnergies> out;
  for (const IntervalEnergies& e : comparison.intervals) {
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const auto& n) { return n.name == e.interval.name; });
    if (at == out.end()) {
      NamedEnergies n{.name = e.interval.name};
      n.by_method.assign(kMethodCount, Joules(0));
      if (e.truth) n.truth = Joules(0);
      at = out.insert(out.end(), n);
    }
    ++at->count;
    at->duration += e.interval.end - e.interval.begin;
    at->readings += e.of(Method::kSynchronized).readings;
    for (size_t m = 0; m < kMethodCount; ++m) {
      if (e.by_method[m].energy && at->by_method[m])
        *at->by_method[m] += *e.by_method[m].energy;
      else
        at->by_method[m].reset();
    }
    if (e.truth && at->truth) *at->truth += *e.truth;
  }
  return out;
}

}  // namespace gpusim::power
