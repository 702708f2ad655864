#include "energy/power/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/error.h"
#include "energy/power/updates.h"

namespace gpusim::power {

Trace record(PowerSource& source, const RecordOptions& options,
             const std::function<bool()>& is_over,
             const std::function<void(const RecordStatus&)>& show) {
  Trace trace;
  trace.source = source.name();
  RecordStatus status;
  const Seconds begin = source.now();
  const Seconds step = 1.0 / options.rate;
  Seconds next = begin, next_show = begin;
  const auto take = [&](const Sample& s) {
    // Times of one clock do not fall; a source whose clock was set back ends the trace's order.
    if (!trace.samples.empty() && s.time < trace.samples.back().time)
      throw Error(fmt::format("{}: its clock ran backwards by {:.6g} s", source.name(),
                              (trace.samples.back().time - s.time).value()));
    if (!trace.samples.empty())
      status.energy +=
          (s.time - trace.samples.back().time) * (s.power + trace.samples.back().power) * 0.5;
    trace.samples.push_back(s);
    status.now = s.power;
    status.peak = std::max(status.peak, s.power);
    status.elapsed = s.time - trace.samples.front().time;
    status.mean = status.elapsed > Seconds(0) ? status.energy / status.elapsed : s.power;
    ++status.samples;
  };
  try {
    while (!is_over()) {
      const auto sample = source.poll();
      if (!sample) break;
      take(*sample);
      if (show && sample->time >= next_show) {
        show(status);
        next_show = sample->time + Seconds(0.1);
      }
      if (options.most && source.now() - begin >= *options.most) break;
      // Polls that were missed are not made up for.
      next = std::max(next + step, source.now());
      source.sleep_until(next);
    }
  } catch (const Error& error) {
    trace.is_partial = true;
    trace.notes.push_back(
        fmt::format("the source failed after {} samples: {}", trace.samples.size(), error.what()));
  }
  return trace;
}

EnergySummary summarize_energy(const Trace& trace, std::optional<Interval> part,
                               Watts sensor_error) {
  EnergySummary e;
  const auto& all = trace.samples;
  if (all.empty()) return e;
  const Seconds begin = part ? part->begin : all.front().time;
  const Seconds end = part ? part->end : all.back().time;
  e.duration = end - begin;
  const auto period = measure_update_period(all);
  SensorProfile profile;
  if (period) profile.update_period = e.update_period = period->period;
  const std::vector<Sample> updates = distinct_updates(all, profile);
  const Seconds gap = longest_bridged(all);
  e.least = Watts(1e300);
  for (const Sample& s : all) {
    if (s.time < begin || s.time > end) continue;
    ++e.samples;
    e.peak = std::max(e.peak, s.power);
    e.least = std::min(e.least, s.power);
  }
  for (const Sample& s : updates) e.updates += s.time >= begin && s.time <= end;
  if (e.samples == 0) e.peak = e.least = Watts(0);
  e.energy = trapezoid(all, begin, end);
  for (size_t i = 1; i < all.size(); ++i) {
    const Seconds from = std::max(begin, all[i - 1].time), to = std::min(end, all[i].time);
    if (all[i].time - all[i - 1].time <= gap || to <= from) continue;
    e.skipped += to - from;
    e.energy -= trapezoid(all, from, to);
  }
  const Seconds measured = e.duration - e.skipped;
  if (measured > Seconds(0)) e.mean = e.energy / measured;
  double squares = 0;
  for (size_t i = 1; i < updates.size(); ++i) {
    if (updates[i].time < begin || updates[i - 1].time > end) continue;
    const double step = (updates[i].time - updates[i - 1].time).value();
    const double change = (updates[i].power - updates[i - 1].power).value();
    if (Seconds(step) <= gap) squares += change * change * step * step / 12;
  }
  const double sensor = sensor_error.value() * measured.value();
  if (squares > 0 || sensor > 0) e.uncertainty = Joules(std::sqrt(squares + sensor * sensor));
  const Sample *first = nullptr, *last = nullptr;
  for (const Sample& s : all) {
    if (!s.energy_total || s.time < begin || s.time > end) continue;
    if (first == nullptr) first = &s;
    last = &s;
  }
  if (first != nullptr && last != first && *last->energy_total >= *first->energy_total) {
    e.counted = *last->energy_total - *first->energy_total;
    e.counted_for = last->time - first->time;
  }
  return e;
}

}  // namespace gpusim::power
