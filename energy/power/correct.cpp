#include "energy/power/correct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/error.h"
#include "energy/power/updates.h"

namespace gpusim::power {
namespace {

// dP/dt at updates[i] of the parabola that fits updates [first, last] best.
double parabola_slope(const std::vector<Sample>& u, size_t first, size_t last, size_t i) {
  // Normal equations of a + b x + c x^2 with x from the middle update, scaled to about 1.
  const double t0 = u[i].time.value();
  const double scale = std::max((u[last].time - u[first].time).value(), 1e-12);
  double s[5] = {}, y[3] = {};
  for (size_t k = first; k <= last; ++k) {
    const double x = (u[k].time.value() - t0) / scale;
    double power = 1;
    for (int n = 0; n < 5; ++n, power *= x) {
      s[n] += power;
      if (n < 3) y[n] += power * u[k].power.value();
    }
  }
  const auto det = [](const double m[3][3]) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  };
  const double all[3][3] = {{s[0], s[1], s[2]}, {s[1], s[2], s[3]}, {s[2], s[3], s[4]}};
  const double for_b[3][3] = {{s[0], y[0], s[2]}, {s[1], y[1], s[3]}, {s[2], y[2], s[4]}};
  const double d = det(all);
  return d == 0 ? 0 : det(for_b) / d / scale;
}

double slope_between(const Sample& a, const Sample& b) {
  const double dt = (b.time - a.time).value();
  return dt > 0 ? (b.power - a.power).value() / dt : 0;
}

}  // namespace

std::vector<Sample> unsmooth(const std::vector<Sample>& updates, const SensorProfile& profile) {
  std::vector<Sample> corrected = updates;
  if (profile.capacitance > Seconds(0) && updates.size() > 1) {
    const size_t half = profile.slope_points / 2, last = updates.size() - 1;
    for (size_t i = 0; i <= last; ++i) {
      const size_t before = i > 0 ? i - 1 : 0, after = std::min(i + 1, last);
      double slope;
      if (profile.slope == Slope::kBackward)
        slope = slope_between(updates[before], updates[i]);
      else if (half > 1 && i >= half && i + half <= last)
        slope = parabola_slope(updates, i - half, i + half, i);
      else
        slope = slope_between(updates[before], updates[after]);
      corrected[i].power += Watts(profile.capacitance.value() * slope);
    }
  }
  for (Sample& s : corrected) s.power = (s.power - profile.offset) / profile.gain;
  return corrected;
}

Correction correct(const Trace& trace, const SensorProfile& profile,
                   std::optional<Watts> threshold) {
  Correction c;
  c.as_read = trapezoid(trace.samples);
  c.updates = distinct_updates(trace.samples, profile);
  if (c.updates.size() < 3)
    throw Error(fmt::format("{}: {} updates of the sensor: at least 3 are needed for slopes",
                            trace.source, c.updates.size()));
  const Seconds back = profile.delay + profile.window * 0.5;
  for (Sample& s : c.updates) s.time -= back;
  c.true_power = unsmooth(c.updates, profile);

  if (threshold)
    c.threshold = *threshold;
  else if (profile.active_idle)
    c.threshold = *profile.active_idle * 1.04;
  const bool takes_all = !threshold && !profile.active_idle;
  const Watts idle = profile.active_idle.value_or(Watts(0));
  const Seconds gap = longest_bridged(c.true_power);
  for (size_t i = 1; i < c.true_power.size(); ++i) {
    const Sample &a = c.true_power[i - 1], &b = c.true_power[i];
    if (b.time - a.time > gap) {
      c.skipped += b.time - a.time;
      continue;
    }
    Seconds begin = a.time, end = b.time;
    Watts from = a.power, to = b.power;
    if (!takes_all) {
      const bool starts_above = a.power > c.threshold, ends_above = b.power > c.threshold;
      if (!starts_above && !ends_above) continue;
      if (starts_above != ends_above) {
        const Seconds crossing =
            a.time + (b.time - a.time) * ((c.threshold - a.power) / (b.power - a.power));
        (starts_above ? end : begin) = crossing;
        (starts_above ? to : from) = c.threshold;
      }
    }
    const Joules joules = (end - begin) * (from + to) * 0.5;
    if (c.active.empty() || begin > c.active.back().end) c.active.push_back({begin, begin, {}});
    c.active.back().end = end;
    c.active.back().energy += joules;
    c.active_time += end - begin;
    c.energy += joules;
    c.above_idle += joules - (end - begin) * idle;
  }
  if (c.skipped > Seconds(0))
    c.notes.push_back(
        fmt::format("{:.3f} s of gaps were left out of the energy", c.skipped.value()));
  if (takes_all)
    c.notes.push_back("no active-idle level is known: everything was integrated, tails included");
  return c;
}

}  // namespace gpusim::power
