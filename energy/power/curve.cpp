#include "energy/power/curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

void check(const std::vector<Knot>& knots) {
  for (size_t i = 0; i < knots.size(); ++i) {
    if (!knots[i].time.is_finite() || !knots[i].power.is_finite())
      throw Error(fmt::format("knot {} of a power curve is not a number", i + 1));
    if (i > 0 && knots[i].time < knots[i - 1].time)
      throw Error(
          fmt::format("knot {} of a power curve lies before the one before it ({} "
                      "s after {} s)",
                      i + 1, knots[i].time.value(), knots[i - 1].time.value()));
  }
}

// The last knot at or before a time; knots are never empty here.
size_t knot_before(const std::vector<Knot>& knots, Seconds time) {
  const auto after = std::upper_bound(knots.begin(), knots.end(), time,
                                      [](Seconds t, const Knot& k) { return t < k.time; });
  return after == knots.begin() ? 0 : static_cast<size_t>(after - knots.begin()) - 1;
}

}  // namespace

Curve::Curve(std::vector<Knot> knots) {
  check(knots);
  append(knots);
}

Watts Curve::at(Seconds time) const {
  if (knots_.empty()) return Watts(0);
  const size_t i = knot_before(knots_, time);
  const Knot& a = knots_[i];
  if (time <= a.time || i + 1 == knots_.size()) return a.power;
  const Knot& b = knots_[i + 1];
  return a.power + (b.power - a.power) * ((time - a.time) / (b.time - a.time));
}

Joules Curve::energy(Seconds begin, Seconds end) const {
  if (knots_.empty()) return Joules(0);
  const auto from_first = [&](Seconds t) {
    const Knot& first = knots_.front();
    if (t <= first.time) return (t - first.time) * first.power;
    const size_t i = knot_before(knots_, t);
    return Joules(energy_[i]) + (t - knots_[i].time) * (knots_[i].power + at(t)) * 0.5;
  };
  return from_first(end) - from_first(begin);
}

void Curve::append(const std::vector<Knot>& knots) {
  if (knots.empty()) return;
  check(knots);
  const Seconds from = knots.front().time;
  const auto first_replaced = std::lower_bound(knots_.begin(), knots_.end(), from,
                                               [](const Knot& k, Seconds t) { return k.time < t; });
  std::vector<Knot> added;
  if (first_replaced != knots_.begin() ||
      (!knots_.empty() && knots_.front().time == from)) {  // what held until the step
    const size_t last = static_cast<size_t>(first_replaced - knots_.begin());
    Watts before = last > 0 ? knots_[last - 1].power : knots_.front().power;
    if (last > 0 && first_replaced != knots_.end()) {
      const Knot& a = knots_[last - 1];
      before = a.power + (first_replaced->power - a.power) *
                             ((from - a.time) / (first_replaced->time - a.time));
    }
    added.push_back({from, before});
  }
  added.insert(added.end(), knots.begin(), knots.end());
  knots_.erase(first_replaced, knots_.end());
  energy_.resize(knots_.size());
  for (const Knot& k : added) {
    double joules = 0;
    if (!knots_.empty())
      joules = energy_.back() +
               ((k.time - knots_.back().time) * (k.power + knots_.back().power) * 0.5).value();
    knots_.push_back(k);
    energy_.push_back(joules);
  }
}

}  // namespace gpusim::power
