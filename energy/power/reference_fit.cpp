#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "energy/error.h"
#include "energy/power/calibrate.h"
#include "energy/power/correct.h"

namespace gpusim::power {
namespace {

struct Line {
  double gain = 1, offset = 0, rms = 0;
};

Line fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  double mx = 0, my = 0, xx = 0, xy = 0;
  const double n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
  }
  Line line;
  if (xx > 0) line.gain = xy / xx;
  line.offset = my - line.gain * mx;
  for (size_t i = 0; i < x.size(); ++i) {
    const double miss = line.gain * x[i] + line.offset - y[i];
    line.rms += miss * miss / n;
  }
  line.rms = std::sqrt(line.rms);
  return line;
}

class Comparison {
 public:
  Comparison(const std::vector<Sample>& updates, const Trace& reference, Seconds period,
             Seconds most_offset)
      : updates_(updates) {
    const Seconds begin = reference.samples.front().time, end = reference.samples.back().time;
    // Energy from the beginning, at even steps: looked up millions of times.
    constexpr double kFinest = 0.00025, kMostSteps = 4e6;
    const Curve truth = curve_of(reference.samples);
    begin_ = begin.value();
    step_ = std::max(kFinest, (end - begin).value() / kMostSteps);
    for (double t = 0; t < (end - begin).value() + 2 * step_; t += step_)
      energy_.push_back(truth.energy(begin, Seconds(begin_ + t)).value());
    for (size_t i = 1; i + 1 < updates.size(); ++i) {
      const Seconds t = updates[i].time;
      if (t - period - most_offset > begin && t + most_offset < end) used_.push_back(i);
    }
  }
  const std::vector<size_t>& used() const { return used_; }

  double mean(Seconds begin, Seconds end) const {
    return (energy_at(end) - energy_at(begin)) / (end - begin).value();
  }
  // What each update used is compared with, for an offset of the clocks.
  std::vector<double> means(Seconds offset, Seconds window) const {
    std::vector<double> values;
    for (const size_t i : used_) {
      const Seconds t = updates_[i].time + offset;
      values.push_back(mean(t - window, t));
    }
    return values;
  }

 private:
  double energy_at(Seconds time) const {
    const double at = (time.value() - begin_) / step_;  // beyond the ends power is as it was there
    const size_t i = std::min(static_cast<size_t>(std::max(at, 0.0)), energy_.size() - 2);
    return energy_[i] + (energy_[i + 1] - energy_[i]) * (at - static_cast<double>(i));
  }

  const std::vector<Sample>& updates_;
  double begin_ = 0, step_ = 0;
  std::vector<double> energy_;
  std::vector<size_t> used_;
};

// Over those of a list that `picked` says.
double rms_of(const std::vector<double>& a, const std::vector<double>& b,
              const std::vector<bool>& picked) {
  double sum = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (picked[i]) sum += (a[i] - b[i]) * (a[i] - b[i]), n += 1;
  return n > 0 ? std::sqrt(sum / n) : 0;
}

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
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
    throw energy::Error(reference.source + ": a reference of two samples or more is needed");
  const Seconds apart = all.front().time - reference.samples.front().time;
  const auto measured = measure_update_period(all);
  const Seconds period = measured ? measured->period : Seconds(0.02);
  const std::vector<Sample> updates = distinct_updates(all, {.update_period = period});
  const Comparison compare(updates, reference, period, most_offset);
  if (compare.used().size() < 10) {
    const double half_hours = std::round(apart.value() / 1800);
    const std::string hint =
        half_hours != 0 && std::abs(half_hours) <= 28
            ? fmt::format(
                  "; were the recording's clock set to UTC{:+g}, they might overlap: "
                  "--utc-offset {:g}",
                  half_hours / 2, half_hours / 2)
            : "";
    throw energy::Error(fmt::format(
        "{} and {} do not overlap enough: only {} updates of the sensor lie within the reference "
        "(the recording begins {:.3f} s after it){}",
        trace.source, reference.source, compare.used().size(), apart.value(), hint));
  }
  ReferenceFit fit;
  fit.updates = compare.used().size();

  // Gain and offset where nothing has moved for a second, so that lag and clocks do not matter.
  std::vector<double> quiet_truth, quiet_reading;
  const auto [low, high] = std::minmax_element(
      all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.power < b.power; });
  const double range = (high->power - low->power).value();
  // Nothing may move by more than a part of the range: a small one, if enough is that quiet.
  const Seconds still(1.0);
  const auto has_two_levels = [&] {
    const auto [least, most] = std::minmax_element(quiet_truth.begin(), quiet_truth.end());
    return least != quiet_truth.end() && *most - *least >= 0.2 * range;
  };
  for (const double part : {0.003, 0.01, 0.03}) {
    quiet_truth.clear();
    quiet_reading.clear();
    size_t first = 0;
    for (const Sample& s : all) {
      const Seconds begin = s.time - still;
      while (all[first].time < begin) ++first;
      if (all.front().time > begin || begin - most_offset < reference.samples.front().time ||
          s.time + most_offset > reference.samples.back().time)
        continue;
      const double whole = compare.mean(begin - most_offset, s.time + most_offset);
      const double late = compare.mean(s.time, s.time + most_offset);
      const double early = compare.mean(begin - most_offset, begin);
      const auto is_near = [&](double a, double b) {
        return std::abs(a - b) < part * range + 1e-9;
      };
      bool is_still = is_near(whole, late) && is_near(whole, early);
      for (size_t i = first; is_still && i < all.size() && all[i].time <= s.time; ++i)
        is_still = is_near(all[i].power.value(), s.power.value());
      if (!is_still) continue;
      quiet_truth.push_back(whole);
      quiet_reading.push_back(s.power.value());
    }
    if (quiet_truth.size() >= 10 && has_two_levels()) break;
  }
  if (quiet_truth.size() < 3)
    throw energy::Error(
        fmt::format("{}: nowhere were sensor and reference quiet for {:.1f} s: gain and offset "
                    "need steady loads",
                    trace.source, (still + 2 * most_offset).value()));
  fit.quiet = quiet_truth.size();
  Line line;
  fit.has_one_level = !has_two_levels();
  if (fit.has_one_level) {
    for (size_t i = 0; i < quiet_truth.size(); ++i)
      line.offset += (quiet_reading[i] - quiet_truth[i]) / static_cast<double>(quiet_truth.size());
    std::vector<double> moved = quiet_truth;
    for (double& w : moved) w += line.offset;
    line.rms = rms(moved, quiet_reading);
  } else {
    line = fit_line(quiet_truth, quiet_reading);
  }
  fit.gain = line.gain;
  fit.offset = Watts(line.offset);
  fit.gain_rms = Watts(line.rms);
  if (!(fit.gain > 0.05))
    throw energy::Error(
        fmt::format("{}: it does not follow the reference (gain {:.3f})", trace.source, fit.gain));

  std::vector<double> scaled, unscaled;
  std::vector<bool> is_new;
  for (const size_t i : compare.used()) {
    is_new.push_back(updates[i].power != updates[i - 1].power);
    fit.new_values += is_new.back();
    unscaled.push_back(updates[i].power.value());
    scaled.push_back((updates[i].power.value() - line.offset) / line.gain);
  }
  const double grid = std::max(period.value() / 4, 0.0005), reach = most_offset.value();

  // P + C dP/dt is linear in C: the best C for an offset of the clocks is a division.
  const auto fit_slope = [&](Slope slope) {
    const SensorProfile unit{
        .capacitance = Seconds(1), .slope = slope, .gain = fit.gain, .offset = fit.offset};
    const std::vector<Sample> with_slope = unsmooth(updates, unit);
    std::vector<double> slopes;
    for (size_t n = 0; n < scaled.size(); ++n)
      slopes.push_back(with_slope[compare.used()[n]].power.value() - scaled[n]);
    const auto solve = [&](double offset) {
      const std::vector<double> truth = compare.means(Seconds(offset), period);
      double ss = 0, st = 0;
      for (size_t n = 0; n < truth.size(); ++n) {
        ss += slopes[n] * slopes[n];
        st += slopes[n] * (truth[n] - scaled[n]);
      }
      const double c = ss > 0 ? std::max(0.0, st / ss) : 0;
      std::vector<double> corrected = scaled;
      for (size_t n = 0; n < truth.size(); ++n) corrected[n] += c * slopes[n];
      return std::pair(rms(corrected, truth), c);
    };
    const double at = best_offset(reach, grid, [&](double o) { return solve(o).first; });
    const auto [error, c] = solve(at);
    std::vector<double> corrected = scaled;
    for (size_t n = 0; n < scaled.size(); ++n) corrected[n] += c * slopes[n];
    return ModelFit{
        .capacitance = Seconds(c),
        .clock_offset = Seconds(at),
        .rms = Watts(error),
        .new_rms = Watts(rms_of(corrected, compare.means(Seconds(at), period), is_new))};
  };
  fit.symmetric = fit_slope(Slope::kSymmetric);
  fit.backward = fit_slope(Slope::kBackward);

  const auto window_fit = [&](double window) {
    const auto error = [&](double offset) {
      return rms(scaled, compare.means(Seconds(offset), Seconds(window)));
    };
    const double at = best_offset(reach, grid, error);
    return ModelFit{
        .window = Seconds(window),
        .clock_offset = Seconds(at),
        .rms = Watts(error(at)),
        .new_rms = Watts(rms_of(scaled, compare.means(Seconds(at), Seconds(window)), is_new))};
  };
  fit.window.rms = Watts(1e300);
  double best_window = 0;
  constexpr double kLeast = 0.002, kMost = 2;
  std::vector<ModelFit> tried;
  const auto try_window = [&](double w) {
    tried.push_back(window_fit(w));
    if (tried.back().rms < fit.window.rms) fit.window = tried.back(), best_window = w;
  };
  for (double w = kLeast; w < kMost; w *= 1.25) try_window(w);
  for (double factor = 1.12; factor > 1.002; factor = std::sqrt(factor))
    for (const double w : {best_window / factor, best_window * factor}) try_window(w);
  fit.window.window_least = fit.window.window_most = fit.window.window;
  for (const ModelFit& m : tried) {
    if (m.rms > fit.window.rms * 1.1) continue;
    fit.window.window_least = std::min(fit.window.window_least, m.window);
    fit.window.window_most = std::max(fit.window.window_most, m.window);
  }

  const ModelFit& model = fit.is_smoothed() ? fit.best_slope() : fit.window;
  const std::vector<double> truth = compare.means(model.clock_offset, period);
  fit.raw_rms = Watts(rms(scaled, truth));
  fit.raw_new_rms = Watts(rms_of(scaled, truth, is_new));
  const auto raw_error = [&](double o) { return rms(scaled, compare.means(Seconds(o), period)); };
  fit.raw_rms_aligned = Watts(raw_error(best_offset(reach, grid, raw_error)));
  fit.unscaled_rms = Watts(rms(unscaled, truth));
  return fit;
}

}  // namespace gpusim::power
