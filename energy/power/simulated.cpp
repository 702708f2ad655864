#include "energy/power/simulated.h"

#include <algorithm>
#include <cmath>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

std::vector<Knot> shifted(const std::vector<Knot>& knots, Seconds by) {
  std::vector<Knot> moved = knots;
  for (Knot& k : moved) k.time += by;
  return moved;
}

}  // namespace

SimulatedSource::SimulatedSource(SensorModel sensor, SimulatedDevice device, std::string name)
    : name_(std::move(name)), sensor_(sensor), device_(std::move(device)), random_(device_.seed) {
  truth_ = device_.curve.empty() ? Curve::constant(device_.idle) : Curve(device_.curve);
  std::vector<Seconds> starts = device_.starts;
  std::sort(starts.begin(), starts.end());
  for (const Seconds start : starts) run(device_.kernel, start);
  next_update_ = next_update_at_ = sensor_.update_phase.value();
}

Seconds SimulatedSource::run(const std::vector<Knot>& kernel, Seconds after) {
  if (kernel.empty()) throw Error(name_ + ": it has no kernel that could run");
  update_until(now_.value());
  const Seconds start = now_ + after;
  const Seconds end = start + kernel.back().time;
  std::vector<Knot> knots = shifted(kernel, start);
  if (device_.tail.empty()) {
    knots.push_back({end, device_.idle});
  } else {
    for (const Knot& k : shifted(device_.tail, end)) knots.push_back(k);
  }
  truth_.append(knots);
  const auto& all = truth_.knots();
  const auto first_new = std::lower_bound(all.begin(), all.end(), start,
                                          [](const Knot& k, Seconds t) { return k.time < t; });
  held_.resize(std::min(held_.size(), static_cast<size_t>(first_new - all.begin())));
  return end;
}

// On a straight line P = a + b s the capacitor's dM/dt = (P - M) / C has the solution
// M = a + b (s - C) + (M0 - a + b C) exp(-s / C).
double SimulatedSource::capacitor_at(double time) const {
  const double c = sensor_.lag.value();
  if (c <= 0) return truth_.at(Seconds(time)).value();
  extend_capacitor();
  const auto& knots = truth_.knots();
  if (time <= knots.front().time.value()) return knots.front().power.value();
  const auto after = std::upper_bound(knots.begin(), knots.end(), time,
                                      [](double t, const Knot& k) { return t < k.time.value(); });
  const size_t i = static_cast<size_t>(after - knots.begin()) - 1;
  const double a = knots[i].power.value(), s = time - knots[i].time.value();
  double b = 0;
  if (i + 1 < knots.size()) {
    const double length = (knots[i + 1].time - knots[i].time).value();
    if (length > 0) b = (knots[i + 1].power.value() - a) / length;
  }
  return a + b * (s - c) + (held_[i] - a + b * c) * std::exp(-s / c);
}

void SimulatedSource::extend_capacitor() const {
  const auto& knots = truth_.knots();
  const double c = sensor_.lag.value();
  if (held_.empty()) held_.push_back(knots.front().power.value());
  while (held_.size() < knots.size()) {
    const size_t i = held_.size() - 1;
    const double a = knots[i].power.value();
    const double length = (knots[i + 1].time - knots[i].time).value();
    const double b = length > 0 ? (knots[i + 1].power.value() - a) / length : 0;
    held_.push_back(a + b * (length - c) + (held_[i] - a + b * c) * std::exp(-length / c));
  }
}

// From C dM/dt = P - M: what the capacitor held is what flowed in, less what it has gained.
double SimulatedSource::capacitor_integral(double begin, double end) const {
  return truth_.energy(Seconds(begin), Seconds(end)).value() -
         sensor_.lag.value() * (capacitor_at(end) - capacitor_at(begin));
}

Watts SimulatedSource::smoothed_at(Seconds time) const {
  const double t = time.value(), w = sensor_.window.value();
  const double seen = w > 0 ? capacitor_integral(t - w, t) / w : capacitor_at(t);
  return Watts(seen) * sensor_.gain + sensor_.offset;
}

void SimulatedSource::update_until(double time) {
  const auto take = [&](double at) {
    double value = smoothed_at(Seconds(at)).value();
    if (sensor_.noise.value() > 0)
      value += std::normal_distribution<double>(0, sensor_.noise.value())(random_);
    const double q = sensor_.quantum.value();
    shown_ = Watts(q > 0 ? std::round(value / q) * q : value);
    shown_energy_ =
        truth_.energy(Seconds(0), Seconds(at)) * sensor_.gain + sensor_.offset * Seconds(at);
    ++updates_;
  };
  const double period = sensor_.update_period.value();
  if (updates_ == 0) take(std::min(time, 0.0));
  if (period <= 0) return take(time);
  while (next_update_at_ <= time) {
    take(next_update_at_);
    next_update_ += period;
    const double drift = sensor_.update_drift.value(), jitter = sensor_.update_jitter.value();
    if (drift > 0) next_update_ += std::normal_distribution<double>(0, drift)(random_);
    double at = next_update_;
    if (jitter > 0) at += std::normal_distribution<double>(0, jitter)(random_);
    next_update_at_ = std::max(at, next_update_at_ + 0.05 * period);
  }
}

void SimulatedSource::sleep_until(Seconds time) { now_ = std::max(now_, time); }

std::optional<Sample> SimulatedSource::poll() {
  const bool has_end = device_.length > Seconds(0);
  double took = sensor_.poll.value();
  if (sensor_.poll_idle && truth_.at(now_) <= device_.idle) took = sensor_.poll_idle->value();
  if (sensor_.poll_jitter > Seconds(0))
    took = std::max(0.1 * took,
                    std::normal_distribution<double>(took, sensor_.poll_jitter.value())(random_));
  if (sensor_.stall_chance > 0 &&
      std::uniform_real_distribution<double>(0, 1)(random_) < sensor_.stall_chance)
    took += sensor_.stall_length.value();
  const uint64_t before = updates_;
  update_until(now_.value() + took);
  if (updates_ != before && before != 0) took += sensor_.poll_after_update.value();
  now_ += Seconds(took);
  if (has_end && now_ > device_.length) {
    if (device_.fails_at_end) throw Error(name_ + ": the simulated sensor died, as it was told to");
    return std::nullopt;
  }
  Sample sample{.time = now_, .power = shown_};
  if (sensor_.has_counter) sample.energy_total = shown_energy_;
  return sample;
}

Seconds SimulatedWorkload::start() {
  end_ = source_.run(source_.kernel(), launch_);
  return source_.now();
}

bool SimulatedWorkload::is_running() { return source_.now() < end_; }

Seconds SimulatedWorkload::finish() {
  source_.sleep_until(end_);
  return end_;
}

}  // namespace gpusim::power
