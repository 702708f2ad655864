#include "energy/power/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

Sample need(PowerSource& source) {
  const auto sample = source.poll();
  if (!sample)
    throw Error(source.name() +
                ": it ended before the profile was complete; a longer "
                "recording or simulation is needed");
  return *sample;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// An update was made between the poll that still read the old value and the one that read the new.
Seconds between(const Sample& before, const Sample& after) {
  return (before.time + after.time) * 0.5;
}

class Durations {
 public:
  void add(Seconds d) { all_.push_back(d.value()); }
  void give(PowerProfile& p) const {
    double sum = 0, squares = 0;
    for (const double d : all_) sum += d;
    const double n = static_cast<double>(all_.size()), mean = n > 0 ? sum / n : 0;
    for (const double d : all_) squares += (d - mean) * (d - mean);
    p.kernel = Seconds(mean);
    p.kernel_spread = Seconds(n > 0 ? std::sqrt(squares / n) : 0);
    if (n > 2 && p.kernel_spread > p.kernel * 0.05)
      p.notes.push_back(fmt::format("the kernel's time varies by {:.0f} %: the curve is blurred",
                                    100 * (p.kernel_spread / p.kernel)));
  }

 private:
  std::vector<double> all_;
};

// Where power first is on the kernel's side of the level (or last, from behind): at a point whose
// next three are mostly there, too, so that one outlier is no edge. Half way from the point before.
std::optional<Seconds> edge(const std::vector<ProfilePoint>& points, Watts level, bool rises,
                            bool from_behind) {
  const auto point = [&](size_t i) -> const ProfilePoint& {
    return points[from_behind ? points.size() - 1 - i : i];
  };
  for (size_t i = 0; i + 3 < points.size(); ++i) {
    int there = 0;
    for (size_t k = i; k < i + 4; ++k) there += (point(k).power > level) == rises;
    if ((point(i).power > level) != rises || there < 3) continue;
    if (i == 0) return std::nullopt;
    return (point(i - 1).time + point(i).time) * 0.5;
  }
  return std::nullopt;
}

void evaluate(PowerProfile& p) {
  auto& points = p.points;
  std::sort(points.begin(), points.end(),
            [](const ProfilePoint& a, const ProfilePoint& b) { return a.time < b.time; });
  if (points.size() < 8)
    throw Error(
        fmt::format("{}: only {} updates of the sensor met the kernel in {} runs; "
                    "more runs are needed",
                    p.source, points.size(), p.runs));
  const Seconds begin = points.front().time, end = points.back().time, k = p.kernel;
  std::vector<double> quiet, busy;
  for (const ProfilePoint& x : points) {
    if (x.time < Seconds(0) || x.time > end - (end - k) * 0.25) quiet.push_back(x.power.value());
    if (x.time > k * 0.1 && x.time < k * 0.9) busy.push_back(x.power.value());
  }
  if (busy.empty())
    throw Error(p.source +
                ": no update of the sensor fell into the kernel; more runs are "
                "needed");
  p.plateau = Watts(median(busy));
  p.baseline =
      quiet.empty() ? std::min(points.front().power, points.back().power) : Watts(median(quiet));
  const Watts level = (p.baseline + p.plateau) * 0.5;
  const bool rises = p.plateau > p.baseline;
  p.rise = edge(points, level, rises, false);
  p.fall = edge(points, level, rises, true);
  if (!p.rise && begin >= Seconds(0)) p.rise = Seconds(0);

  std::vector<Sample> curve;
  for (const ProfilePoint& x : points) curve.push_back({.time = x.time, .power = x.power});
  p.energy = trapezoid(curve, Seconds(0), k);
  p.above_baseline = trapezoid(curve) - p.baseline * (end - begin);
  // Scatter of a point: median difference of neighbours / (0.6745 sqrt 2). n points of it over the
  // kernel's time have a mean of scatter / sqrt n.
  std::vector<double> steps;
  size_t inside = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].time < Seconds(0) || points[i].time > k) continue;
    ++inside;
    steps.push_back(std::abs((points[i].power - points[i - 1].power).value()));
  }
  if (inside > 0) {
    const double scatter = median(steps) / (0.6745 * std::sqrt(2.0));
    // Each edge is known to half the distance of two points.
    const Seconds spacing = k / static_cast<double>(inside);
    const double edges =
        std::abs((p.plateau - p.baseline).value()) * spacing.value() / std::sqrt(6);
    const double mean = scatter / std::sqrt(static_cast<double>(inside)) * k.value();
    p.energy_error = Joules(std::sqrt(mean * mean + edges * edges));
  }
}

}  // namespace

UpdatePeriod measure_interval(PowerSource& source, const ProfileOptions& options) {
  if (options.interval) return {.period = *options.interval};
  std::vector<Sample> samples;
  const Seconds begin = source.now();
  for (size_t changes = 0; changes < options.interval_changes + 1;) {
    samples.push_back(need(source));
    const size_t n = samples.size();
    changes += n > 1 && samples[n - 1].power != samples[n - 2].power;
    if (source.now() - begin > options.most_waiting) break;
  }
  const auto period = measure_update_period(samples);
  if (!period)
    throw Error(fmt::format(
        "{}: the value hardly changed in {:g} s, so the sampling interval cannot be measured; give "
        "it (--interval)",
        source.name(), options.most_waiting.value()));
  return *period;
}

PowerProfile profile_offline(PowerSource& source, Workload& workload,
                             const ProfileOptions& options) {
  PowerProfile p;
  p.source = source.name();
  p.interval = measure_interval(source, options);
  const Seconds t = p.interval.period;
  const Seconds first = workload.start();
  Seconds kernel = workload.finish() - first;
  Durations durations;
  std::mt19937_64 random(options.seed);
  std::uniform_real_distribution<double> wait(1, 2);
  source.sleep_until(source.now() + t * 2);
  for (unsigned run = 0; run < options.runs; ++run) {
    const Seconds until = source.now() + t * wait(random);
    std::vector<ProfilePoint> before;  // times on the source's clock
    Sample last = need(source);
    const auto watch = [&](auto emit) {
      const Sample now = need(source);
      if (now.power != last.power) emit(between(last, now), now.power);
      last = now;
    };
    while (source.now() < until)
      watch([&](Seconds at, Watts power) { before.push_back({at, power}); });
    const Seconds start = workload.start();
    for (const ProfilePoint& b : before) p.points.push_back({b.time - start, b.power});
    bool is_running = true;
    const auto over = [&] { return source.now() - start >= options.delay + kernel + t; };
    while (is_running || !over()) {
      watch([&](Seconds at, Watts power) { p.points.push_back({at - start, power}); });
      if (is_running && !workload.is_running()) {
        kernel = workload.finish() - start;
        durations.add(kernel);
        is_running = false;
      }
    }
    ++p.runs;
  }
  durations.give(p);
  evaluate(p);
  return p;
}

PowerProfile profile_online(PowerSource& source, Workload& workload, Seconds pause,
                            const ProfileOptions& options) {
  PowerProfile p;
  p.source = source.name();
  p.interval = measure_interval(source, options);
  const Seconds t = p.interval.period;
  // syncClocks(): the time of the next update that is seen.
  const auto sync_clocks = [&] {
    Sample last = need(source);
    const Seconds give_up = source.now() + options.most_waiting;
    for (;;) {
      const Sample now = need(source);
      if (now.power != last.power) {
        ++p.synchronisations;
        return between(last, now);
      }
      if (now.time > give_up) throw Error(source.name() + ": its value does not change any more");
      last = now;
    }
  };
  Seconds kernel;
  {
    const Seconds start = workload.start();
    kernel = workload.finish() - start;
  }
  if (kernel > t)
    throw Error(fmt::format(
        "a kernel of {:.3f} ms cannot be profiled on-line with updates every {:.3f} ms: it must be "
        "shorter; the off-line form takes any",
        kernel.value() * 1e3, t.value() * 1e3));
  Durations durations;
  std::mt19937_64 random(options.seed);
  std::uniform_real_distribution<double> part(0, 1);
  Seconds sync = sync_clocks();
  for (unsigned run = 0; run < options.runs; ++run) {
    const Seconds last_finish = source.now();
    source.sleep_until(last_finish + pause * part(random));
    // The algorithm reads once, after the kernel. One reading before it shows the baseline.
    const Sample before = need(source);
    const Seconds start = workload.start();
    const Seconds next = sync + t * std::floor((start - sync) / t + 1);
    const Seconds margin = t * 0.02;
    if (next - t > last_finish + margin && before.time > next - t + margin)
      p.points.push_back({next - t - start, before.power});
    // syncIfPossible(): where the update falls into the kernel, there is time to watch for it.
    const bool can_watch = start + kernel * options.beta > next;
    if (can_watch) sync = sync_clocks();
    const Seconds finish = workload.finish();
    durations.add(finish - start);
    kernel = finish - start;
    const Sample now = need(source);
    // Nothing if no update fell into the kernel, or another one may have come since.
    const Seconds at = can_watch ? sync : next;
    if (at >= start && at < finish - margin && now.time < at + t - margin)
      p.points.push_back({at - start, now.power});
    else if (at >= finish && now.time >= at + margin && now.time < at + t - margin)
      p.points.push_back({at - start, now.power});
    if (source.now() - sync > options.resync) sync = sync_clocks();
    ++p.runs;
  }
  durations.give(p);
  evaluate(p);
  return p;
}

PowerProfile profile_from_trace(const Trace& trace, const std::string& kernel,
                                const ProfileOptions& options) {
  PowerProfile p;
  p.source = trace.source;
  if (options.interval) {
    p.interval = {.period = *options.interval};
  } else {
    const auto period = measure_update_period(trace.samples);
    if (!period)
      throw Error(trace.source +
                  ": the value hardly changes, so the sampling interval "
                  "cannot be measured; give it (--interval)");
    p.interval = *period;
  }
  std::vector<Interval> runs;
  for (const Interval& i : trace.intervals)
    if (kernel.empty() || i.name == kernel) runs.push_back(i);
  if (runs.empty())
    throw Error(fmt::format(
        "{}: it has no intervals{}; a profile needs to know when each run began and ended (lines "
        "`# interval: BEGIN END NAME`)",
        trace.source, kernel.empty() ? "" : " named " + kernel));
  std::sort(runs.begin(), runs.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Durations durations;
  size_t i = 1;
  for (size_t r = 0; r < runs.size(); ++r) {
    durations.add(runs[r].end - runs[r].begin);
    ++p.runs;
    Seconds from = runs[r].begin - p.interval.period;
    if (r > 0) from = std::max(from, runs[r - 1].end + p.interval.period);
    Seconds to = runs[r].end + p.interval.period;
    if (r + 1 < runs.size()) to = std::min(to, runs[r + 1].begin);
    while (i > 1 && trace.samples[i - 1].time > from) --i;
    for (; i < trace.samples.size() && trace.samples[i].time <= to; ++i) {
      const Sample &a = trace.samples[i - 1], &b = trace.samples[i];
      if (a.power != b.power && between(a, b) >= from)
        p.points.push_back({between(a, b) - runs[r].begin, b.power});
    }
  }
  durations.give(p);
  evaluate(p);
  return p;
}

}  // namespace gpusim::power
