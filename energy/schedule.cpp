#include "energy/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/json_object.h"
#include "energy/quantities.h"

namespace gpusim::energy {
namespace {

class Curve {
 public:
  explicit Curve(const Target& target)
      : target_(target), state_(target.states.empty() ? 0 : target.states.size() - 1) {}

  void add(const Step& step) {
    if (step.duration <= Seconds(0)) return;
    if (step.kind == Step::Kind::kPause) return pause(step);
    state_ = 0;
    append(step.duration, step.power, step.name);
  }
  PowerCurve take() { return std::move(curve_); }

 private:
  // Pauses in a row are one: the time that a state has held goes on.
  void pause(const Step& step) {
    if (!curve_.segments.empty() && curve_.segments.back().what != "idle") held_ = Seconds(0);
    Seconds left = step.duration;
    while (left > Seconds(0)) {
      const bool falls = state_ + 1 < target_.states.size();
      const Seconds here =
          falls ? std::min(left, std::max(Seconds(0), target_.states[state_].hold - held_)) : left;
      if (here > Seconds(0)) append(here, Watts(0), "idle");
      held_ += here;
      left -= here;
      if (falls && left > Seconds(0)) {
        ++state_;
        held_ = Seconds(0);
      }
    }
  }

  void append(Seconds duration, Watts above_idle, const std::string& what) {
    Segment s;
    s.begin = curve_.duration();
    s.end = s.begin + duration;
    s.power = above_idle;
    s.what = what;
    if (!target_.states.empty()) {
      s.power += target_.states[state_].idle_power;
      s.state = target_.states[state_].name;
    }
    curve_.energy += s.power * duration;
    curve_.segments.push_back(std::move(s));
  }

  const Target& target_;
  size_t state_;
  Seconds held_;
  PowerCurve curve_;
};

}  // namespace

Watts PowerCurve::average() const {
  return duration() > Seconds(0) ? energy / duration() : Watts(0);
}

PowerCurve power_curve(const Target& target, const std::vector<Step>& steps) {
  Curve curve(target);
  for (const Step& step : steps) curve.add(step);
  return curve.take();
}

Step kernel_step(const Target& target, const Activity& activity, const EstimateOptions& options) {
  const Estimate e = estimate(target, activity, options);
  if (!e.time || *e.time <= Seconds(0))
    throw Error(fmt::format("energy target {} has no timing: give the seconds that {} takes",
                            target.name, activity.name));
  return {Step::Kind::kKernel, activity.name, *e.time, *e.dynamic_power};
}

Step transfer_step(const Target& target, Bytes size, double count) {
  if (!target.transfer)
    throw Error(fmt::format("energy target {} knows nothing of transfers", target.name));
  return {Step::Kind::kTransfer, "transfer", transfer_time(*target.transfer, size) * count,
          target.transfer->power};
}

std::vector<Step> parse_schedule(const Target& target, const std::string& text,
                                 const std::string& origin, const std::string& folder) {
  const nlohmann::ordered_json json = parse_json(text, origin);
  const JsonObject file(json, origin);
  const auto& list = file.get("steps");
  if (!list.is_array() || list.empty()) file.fail("\"steps\" must be a list that is not empty");
  file.no_other_keys();
  std::vector<Step> steps;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonObject o(list[i], fmt::format("{}[{}]", file.at("steps"), i));
    if (o.has("kernel")) {
      EstimateOptions options;
      if (o.has("seconds")) options.time = Seconds(o.number("seconds"));
      const std::string path = std::filesystem::path(folder) / o.text("kernel");
      steps.push_back(kernel_step(target, load_activity(path), options));
    } else if (o.has("transfer")) {
      const Bytes size = scaled<Bytes>(o.number("transfer"), o.text("unit"), o.where());
      steps.push_back(transfer_step(target, size, o.has("count") ? o.number("count") : 1));
    } else if (o.has("pause")) {
      steps.push_back({Step::Kind::kPause, "idle",
                       scaled<Seconds>(o.number("pause"), o.text("unit"), o.where()), Watts(0)});
    } else {
      o.fail("a step is a \"kernel\", a \"transfer\" or a \"pause\"");
    }
    o.no_other_keys();
  }
  return steps;
}

}  // namespace gpusim::energy
