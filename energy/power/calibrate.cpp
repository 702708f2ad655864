#include "energy/power/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

double milliseconds(Seconds s) { return s.value() * 1e3; }

// tau of the steps, the larger ones counting more.
std::optional<Seconds> tau_of(const std::vector<StepFit>& steps) {
  double sum = 0, weights = 0;
  for (const StepFit& s : steps) {
    if (s.is_ramp) continue;
    const double change = (s.to - s.from).value(), weight = change * change;
    sum += weight * s.capacitance.value();
    weights += weight;
  }
  if (weights == 0) return std::nullopt;
  return Seconds(sum / weights);
}

}  // namespace

Calibration calibrate(const Trace& trace, const std::optional<Trace>& reference,
                      const CalibrateOptions& options) {
  Calibration c;
  SensorProfile& p = c.profile;
  p.name = options.name.empty() ? trace.source : options.name;
  c.period = measure_update_period(trace.samples);
  if (!c.period)
    throw Error(trace.source +
                ": the readings hardly change: a recording of loads that start and stop "
                "is needed");
  p.update_period = c.period->period;
  c.updates = distinct_updates(trace.samples, p);
  c.steps = fit_steps(c.updates);
  if (reference) {
    c.reference = fit_reference(trace, *reference, options.most_offset);
    const ReferenceFit& r = *c.reference;
    p.slope = options.slope.value_or(r.backward.rms < r.symmetric.rms ? Slope::kBackward
                                                                      : Slope::kSymmetric);
    const ModelFit& slope = p.slope == Slope::kBackward ? r.backward : r.symmetric;
    const ModelFit& model = r.is_smoothed() ? slope : r.window;
    p.capacitance = model.capacitance;
    p.window = model.window;
    p.gain = model.gain;
    p.offset = model.offset;
    if (options.has_one_clock) p.delay = -model.clock_offset;
    p.notes.push_back(fmt::format("fitted against {}: rms error {:.2f} W after, {:.2f} W before",
                                  reference->source, model.rms.value(), r.raw_rms.value()));
  } else {
    p.slope = options.slope.value_or(Slope::kSymmetric);
    if (const auto tau = tau_of(c.steps)) {
      p.capacitance = capacitance_for(p.slope, *tau, *p.update_period);
      p.notes.push_back(fmt::format("fitted to {} steps of {}, without a reference", c.steps.size(),
                                    trace.source));
    } else {
      Seconds ramp;
      for (const StepFit& s : c.steps) ramp = std::max(ramp, s.ramp);
      // One partial update is what any step between two updates looks like.
      if (ramp > *p.update_period * 2.5) p.window = ramp - *p.update_period;
    }
  }
  // Where the largest fall settles: between kernels.
  const StepFit* fall = nullptr;
  for (const StepFit& s : c.steps)
    if (s.to < s.from && (fall == nullptr || s.to - s.from < fall->to - fall->from)) fall = &s;
  if (fall != nullptr) p.active_idle = (fall->to - p.offset) / p.gain;
  return c;
}

std::string calibration_text(const Calibration& c) {
  const SensorProfile& p = c.profile;
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "sensor              {}\n", p.name);
  fmt::format_to(out,
                 "update period       {:.4f} ms +- {:.4f} ms ({} intervals, {} of another length "
                 "left out)\n",
                 milliseconds(c.period->period), milliseconds(c.period->error), c.period->intervals,
                 c.period->dropped);
  if (c.period->is_every_poll)
    fmt::format_to(out,
                   "                    readings change with every poll ({:.3f} ms): the sensor "
                   "may be faster\n",
                   milliseconds(c.period->poll));
  if (!c.steps.empty()) {
    const Seconds start = c.updates.front().time;
    fmt::format_to(out, "\n{:>12}  {:>9}  {:>9}  {:>10}  {:>8}\n", "step at s", "from W", "to W",
                   "C ms", "rms W");
    for (const StepFit& s : c.steps) {
      if (s.is_ramp)
        fmt::format_to(out, "{:>12.4f}  {:>9.2f}  {:>9.2f}  no curve: there within {:.1f} ms\n",
                       (s.begin - start).value(), s.from.value(), s.to.value(),
                       milliseconds(s.ramp));
      else
        fmt::format_to(out, "{:>12.4f}  {:>9.2f}  {:>9.2f}  {:>10.2f}  {:>8.3f}\n",
                       (s.begin - start).value(), s.from.value(), s.to.value(),
                       milliseconds(s.capacitance), s.rms.value());
    }
    text += "\n";
  }
  if (c.reference) {
    const ReferenceFit& r = *c.reference;
    fmt::format_to(out, "gain, offset        {:.4f}, {:+.3f} W (over all {} updates)\n", p.gain,
                   p.offset.value(), r.updates);
    fmt::format_to(out, "\n{:<34}  {:>9}  {:>10}\n", "error against the reference, rms W", "all",
                   "new values");
    fmt::format_to(out, "  {:<32}  {:>9}  {:>10}\n", "updates", r.updates, r.new_values);
    fmt::format_to(out, "  {:<32}  {:>9.3f}\n", "as read", r.unscaled_rms.value());
    fmt::format_to(out, "  {:<32}  {:>9.3f}  {:>10.3f}  ({:.3f} with clocks moved to suit it)\n",
                   "gain and offset", r.raw_rms.value(), r.raw_new_rms.value(),
                   r.raw_rms_aligned.value());
    const auto line = [&](const char* name, const ModelFit& m, const std::string& what) {
      fmt::format_to(out, "  {:<32}  {:>9.3f}  {:>10.3f}  {}; clocks {:+.1f} ms\n", name,
                     m.rms.value(), m.new_rms.value(), what, milliseconds(m.clock_offset));
    };
    line("slope, symmetric", r.symmetric,
         fmt::format("C {:.2f} ms", milliseconds(r.symmetric.capacitance)));
    line("slope, backward", r.backward,
         fmt::format("C {:.2f} ms", milliseconds(r.backward.capacitance)));
    line("window", r.window,
         fmt::format("{:.1f} ms ({:.1f} to {:.1f} ms fit as well)", milliseconds(r.window.window),
                     milliseconds(r.window.window_least), milliseconds(r.window.window_most)));
    text += "\n";
  }
  if (p.capacitance > Seconds(0))
    fmt::format_to(out, "C                   {:.4f} s ({} slope)\n", p.capacitance.value(),
                   p.slope == Slope::kBackward ? "backward" : "symmetric");
  else if (p.window > Seconds(0))
    fmt::format_to(out, "window              {:.1f} ms; no capacitor seen\n",
                   milliseconds(p.window));
  else
    text += "no smoothing was seen: C = 0\n";
  if (p.delay != Seconds(0))
    fmt::format_to(out, "delay               {:.2f} ms\n", milliseconds(p.delay));
  if (p.active_idle) fmt::format_to(out, "active idle         {:.2f} W\n", p.active_idle->value());
  return text;
}

}  // namespace gpusim::power
