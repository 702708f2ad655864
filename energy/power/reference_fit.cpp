#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device_sim/base/error.h"
#include "energy/power/comparison.h"
#include "energy/power/correct.h"

namespace gpusim::power {
namespace {

// Over those of a list that `picked` says.
double rms_of(const std::vector<double>& a, const std::vector<double>& b,
              const std::vector<bool>& picked) {
  double sum = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (picked[i]) sum += (a[i] - b[i]) * (a[i] - b[i]), n += 1;
  return n > 0 ? std::sqrt(sum / n) : 0;
}

// The offset between -most and +most with the least error: a grid, then ever finer steps.
template <class F>
double best_offset(double most, double step, F error) {
  double best = 0, least = error(0.0);
  for (double at = -most; at <= most; at += step)
    if (const double e = error(at); e < least) least = e, best = at;
  for (double width = step / 2; width > 1e-5; width /= 2)
    for (const double at : {best - width, best + width})
      if (const double e = error(at); std::abs(at) <= most && e < least) least = e, best = at;
  return best;
}

struct SlopeLine {
  double gain = 1, offset = 0, capacitance = 0, rms = 1e300;  // rms in watts of true power
};
// truth = (reading + C dP/dt - offset) / gain is linear in 1 / gain, C / gain and offset / gain.
SlopeLine fit_slope_line(const std::vector<double>& truth, const std::vector<double>& readings,
                         const std::vector<double>& slopes) {
  const double n = static_cast<double>(truth.size());
  double mt = 0, my = 0, ms = 0;
  for (size_t i = 0; i < truth.size(); ++i)
    mt += truth[i] / n, my += readings[i] / n, ms += slopes[i] / n;
  double yy = 0, ys = 0, ss = 0, ty = 0, ts = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double t = truth[i] - mt, y = readings[i] - my, s = slopes[i] - ms;
    yy += y * y, ys += y * s, ss += s * s, ty += t * y, ts += t * s;
  }
  const double d = yy * ss - ys * ys;
  double a = d > 1e-12 * yy * ss ? (ty * ss - ts * ys) / d : 0;
  double b = d > 1e-12 * yy * ss ? (yy * ts - ys * ty) / d : 0;
  if (a <= 0 || b < 0) a = yy > 0 ? ty / yy : 1, b = 0;  // no lag
  a = std::clamp(a, 1 / kMostGain, 1 / kLeastGain);
  SlopeLine line{.gain = 1 / a, .capacitance = b / a};
  line.offset = my + line.capacitance * ms - line.gain * mt;
  double squares = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double miss = a * (readings[i] - my) + b * (slopes[i] - ms) - (truth[i] - mt);
    squares += miss * miss;
  }
  line.rms = std::sqrt(squares / n);
  return line;
}

}  // namespace

Curve curve_of(const std::vector<Sample>& samples) {
  std::vector<Knot> knots;
  for (const Sample& s : samples) knots.push_back({s.time, s.power});
  return Curve(std::move(knots));
}

bool ReferenceFit::is_smoothed() const {
  return best_slope().rms < window.rms && best_slope().capacitance > Seconds(0);
}

ReferenceFit fit_reference(const Trace& trace, const Trace& reference, Seconds most_offset) {
  const auto& all = trace.samples;
  if (reference.samples.size() < 2)
    throw Error(reference.source + ": a reference of two samples or more is needed");
  const Seconds apart = all.front().time - reference.samples.front().time;
  const auto measured = measure_update_period(all);
  const Seconds period = measured ? measured->period : Seconds(0.02);
  const std::vector<Sample> updates = distinct_updates(all, {.update_period = period});
  constexpr size_t kMostUsed = 20000;
  const Comparison compare(updates, reference, period, most_offset, kMostUsed);
  if (compare.used().size() < 10) {
    const double half_hours = std::round(apart.value() / 1800);
    const std::string hint =
        half_hours != 0 && std::abs(half_hours) <= 28
            ? fmt::format(
                  "; were the recording's clock set to UTC{:+g}, they might overlap: "
                  "--utc-offset {:g}",
                  half_hours / 2, half_hours / 2)
            : "";
    throw Error(fmt::format(
        "{} and {} do not overlap enough: only {} updates of the sensor lie within the reference "
        "(the recording begins {:.3f} s after it){}",
        trace.source, reference.source, compare.used().size(), apart.value(), hint));
  }
  ReferenceFit fit;
  fit.updates = compare.used().size();

  const std::vector<double> readings = compare.readings();
  std::vector<bool> is_new;
  for (const size_t i : compare.used()) {
    is_new.push_back(updates[i].power != updates[i - 1].power);
    fit.new_values += is_new.back();
  }
  const double grid = std::max(period.value() / 4, 0.0005), reach = most_offset.value();

  const auto fit_slope = [&](Slope slope) {
    const std::vector<Sample> with_slope =
        unsmooth(updates, {.capacitance = Seconds(1), .slope = slope});
    std::vector<double> slopes;
    for (size_t n = 0; n < readings.size(); ++n)
      slopes.push_back(with_slope[compare.used()[n]].power.value() - readings[n]);
    const auto solve = [&](double offset) {
      return fit_slope_line(compare.means(Seconds(offset), period), readings, slopes);
    };
    const double at = best_offset(reach, grid, [&](double o) { return solve(o).rms; });
    const SlopeLine line = solve(at);
    std::vector<double> corrected;
    for (size_t n = 0; n < readings.size(); ++n)
      corrected.push_back((readings[n] + line.capacitance * slopes[n] - line.offset) / line.gain);
    return ModelFit{
        .capacitance = Seconds(line.capacitance),
        .clock_offset = Seconds(at),
        .gain = line.gain,
        .offset = Watts(line.offset),
        .rms = Watts(line.rms),
        .new_rms = Watts(rms_of(corrected, compare.means(Seconds(at), period), is_new))};
  };
  fit.symmetric = fit_slope(Slope::kSymmetric);
  fit.backward = fit_slope(Slope::kBackward);
  fit.window = fit_window(updates, reference, period, most_offset);

  const ModelFit& model = fit.best();
  std::vector<double> scaled;
  for (const double reading : readings)
    scaled.push_back((reading - model.offset.value()) / model.gain);
  const std::vector<double> truth = compare.means(model.clock_offset, period);
  fit.raw_rms = Watts(rms_between(scaled, truth));
  fit.raw_new_rms = Watts(rms_of(scaled, truth, is_new));
  const auto raw_error = [&](double o) {
    return rms_between(scaled, compare.means(Seconds(o), period));
  };
  fit.raw_rms_aligned = Watts(raw_error(best_offset(reach, grid, raw_error)));
  fit.unscaled_rms = Watts(rms_between(readings, truth));

  // What no model explains is no sensor of this power.
  const double mean =
      std::accumulate(scaled.begin(), scaled.end(), 0.0) / static_cast<double>(scaled.size());
  const double spread = rms_between(scaled, std::vector<double>(scaled.size(), mean));
  if (model.rms.value() > 0.7 * spread)
    throw Error(
        fmt::format("{}: it does not follow the reference: {:.2f} W are left of readings that vary "
                    "by {:.2f} W, "
                    "whatever window and lag",
                    trace.source, model.rms.value(), spread));
  return fit;
}

}  // namespace gpusim::power
