#include "energy/accelwattch/static_power.h"

#include <fmt/format.h>

#include <cmath>

#include "device_sim/base/error.h"

namespace gpusim::accelwattch {
namespace {

constexpr double kLanes = 32, kHalf = 16;

}  // namespace

std::string_view name(Mix mix) { return kMixNames[static_cast<size_t>(mix)]; }

Mix classify(const UnitUse& u) {
  const bool integer = u.int_add || u.int_mul;
  const int special = u.dp + u.sfu + u.tensor + u.tex;
  if (!integer && !u.fp && special == 0) {
    if (u.l1) return Mix::kL1Only;
    if (u.shared) return Mix::kSharedOnly;
    return u.l2 ? Mix::kL2Only : Mix::kLight;
  }
  if (!integer || special > 1) return Mix::kOther;
  if (!u.fp) {
    if (special == 1) return Mix::kOther;
    return u.int_add && u.int_mul ? Mix::kInt : u.int_add ? Mix::kIntAdd : Mix::kIntMul;
  }
  if (u.dp) return Mix::kIntFpDp;
  if (u.sfu) return Mix::kIntFpSfu;
  if (u.tex) return Mix::kIntFpTex;
  return u.tensor ? Mix::kIntFpTensor : Mix::kIntFp;
}

Watts static_power_all_sms(const StaticCategory& c, double lanes) {
  if (!(lanes >= 0) || lanes > kLanes)
    throw Error(fmt::format("{} active lanes per warp; there are 0 to 32", lanes));
  const double y = std::max(lanes, 1.0);
  if (c.form == LaneForm::kLinear) return c.first_lane + c.added_lane * (y - 1);
  if (y <= kHalf) return c.first_lane + c.added_lane * (y - 1);
  // Between 16 and 17 lanes (averages over warps) it falls linearly to the value at 17.
  if (y < kHalf + 1) {
    const double fall = (y - kHalf) * 0.5 * (kHalf - 1);
    return c.first_lane + c.added_lane * (kHalf - 1 - fall);
  }
  return c.first_lane + c.added_lane * (0.5 * (kHalf - 1) + 0.5 * (y - kHalf - 1));
}

Watts static_power(const StaticCategory& category, double lanes, double active_sms, double sms) {
  if (!(sms > 0) || !(active_sms >= 0) || active_sms > sms)
    throw Error(fmt::format("{} active SMs of {}", active_sms, sms));
  return static_power_all_sms(category, lanes) * (active_sms / sms);
}

StaticCategory make_category(Watts first_lane, Watts all_lanes, LaneForm form) {
  const double added = form == LaneForm::kLinear ? kLanes - 1 : kHalf - 1;
  return {first_lane, (all_lanes - first_lane) / added, form};
}

std::optional<double> lanes_of(const StaticCategory& c, Watts power, double active_sms,
                               double sms) {
  if (c.added_lane.value() == 0 || active_sms <= 0 || c.form != LaneForm::kLinear)
    return std::nullopt;
  return (power * (sms / active_sms) - c.first_lane) / c.added_lane + 1;
}

LaneFit fit_lanes(std::span<const LanePoint> points) {
  std::optional<Watts> first, all;
  for (const LanePoint& p : points) {
    if (!(p.power.value() > 0))
      throw Error(
          fmt::format("static power with {:g} lanes comes out as {:g} W; it must be positive",
                      p.lanes, p.power.value()));
    if (p.lanes == 1) first = p.power;
    if (p.lanes == kLanes) all = p.power;
  }
  if (!first || !all) throw Error("static power needs measurements with 1 and with 32 lanes");
  LaneFit fit;
  const auto rms = [&](const StaticCategory& c) {
    double sum = 0;
    for (const LanePoint& p : points) {
      const double error = static_power_all_sms(c, p.lanes) / p.power - 1;
      sum += error * error;
    }
    return 100 * std::sqrt(sum / static_cast<double>(points.size()));
  };
  const StaticCategory linear = make_category(*first, *all, LaneForm::kLinear);
  const StaticCategory half = make_category(*first, *all, LaneForm::kHalfWarp);
  fit.linear_rms_percent = rms(linear);
  fit.half_warp_rms_percent = rms(half);
  fit.category = fit.half_warp_rms_percent < fit.linear_rms_percent ? half : linear;
  return fit;
}

Watts idle_sm_power(std::span<const IdlePoint> points, double sms, Watts constant) {
  std::optional<Watts> all;
  for (const IdlePoint& p : points)
    if (p.active_sms == sms) all = p.power;
  if (!all) throw Error(fmt::format("idle power needs a measurement with all {} SMs active", sms));
  const Watts per_active = (*all - constant) / sms;
  Watts sum;
  double count = 0;
  for (const IdlePoint& p : points) {
    if (p.active_sms >= sms) continue;
    sum += (p.power - constant - per_active * p.active_sms) / (sms - p.active_sms);
    ++count;
  }
  if (count == 0) throw Error("idle power needs a measurement with fewer SMs active");
  return sum / count;
}

Watts idle_sm_power(std::span<const Watts> workloads) {
  double logs = 0;
  for (const Watts w : workloads) {
    if (w.value() <= 0)
      throw Error(
          fmt::format("a workload's power per idle SM comes out as {} W; a geometric mean "
                      "needs positive ones",
                      w.value()));
    logs += std::log(w.value());
  }
  if (workloads.empty()) throw Error("idle power needs a workload");
  return Watts(std::exp(logs / static_cast<double>(workloads.size())));
}

}  // namespace gpusim::accelwattch
