#include "energy/power/sensor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

double ms(Seconds s) { return s.value() * 1e3; }

}  // namespace

SensorReport analyse_sensor(const Trace& trace, const std::optional<Trace>& reference,
                            const CalibrateOptions& options) {
  SensorReport r;
  r.source = trace.source;
  r.readings = trace.samples.size();
  if (r.readings < 3)
    throw Error(fmt::format("{}: {} readings are too few", trace.source, r.readings));
  std::vector<double> steps, values;
  size_t changes = 0;
  for (size_t i = 0; i < r.readings; ++i) {
    values.push_back(trace.samples[i].power.value());
    if (i == 0) continue;
    steps.push_back((trace.samples[i].time - trace.samples[i - 1].time).value());
    changes += values[i] != values[i - 1];
  }
  std::sort(steps.begin(), steps.end());
  r.poll_median = Seconds(steps[steps.size() / 2]);
  r.poll_least = Seconds(steps.front());
  r.poll_most = Seconds(steps.back());
  r.repeats = changes > 0 ? static_cast<double>(r.readings) / static_cast<double>(changes) : 0;
  std::sort(values.begin(), values.end());
  values.erase(
      std::unique(values.begin(), values.end(), [](double a, double b) { return b - a < 1e-7; }),
      values.end());
  r.values = values.size();
  for (size_t i = 1; i < values.size(); ++i) {
    const Watts step(values[i] - values[i - 1]);
    if (i == 1 || step < r.quantum) r.quantum = step;
  }
  try {
    r.calibration = calibrate(trace, reference, options);
  } catch (const Error& error) {
    if (reference) throw;  // the user asked for a comparison
    r.why_not = error.what();
  }
  return r;
}

std::string sensor_report_text(const SensorReport& r) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "readings            {} of {}, {} different values\n", r.readings, r.source,
                 r.values);
  fmt::format_to(out, "a reading takes     {:.4f} ms (median; {:.4f} to {:.4f} ms)\n",
                 ms(r.poll_median), ms(r.poll_least), ms(r.poll_most));
  if (r.repeats > 0) fmt::format_to(out, "readings per value  {:.1f}\n", r.repeats);
  if (r.values > 1) fmt::format_to(out, "least step          {:.4g} W\n", r.quantum.value());
  if (r.calibration)
    text += calibration_text(*r.calibration);
  else
    fmt::format_to(out, "note: {}\n", r.why_not);
  return text;
}

std::string sensor_report_json(const SensorReport& r) {
  nlohmann::ordered_json json = {{"source", r.source},
                                 {"readings", r.readings},
                                 {"values", r.values},
                                 {"poll_median_s", r.poll_median.value()},
                                 {"poll_least_s", r.poll_least.value()},
                                 {"poll_most_s", r.poll_most.value()},
                                 {"readings_per_value", r.repeats},
                                 {"quantum_W", r.quantum.value()}};
  if (r.calibration) {
    const Calibration& c = *r.calibration;
    json["profile"] = nlohmann::ordered_json::parse(sensor_profile_json(c.profile));
    json["update_period_s"] = c.period->period.value();
    json["update_period_error_s"] = c.period->error.value();
    json["steps"] = nlohmann::ordered_json::array();
    for (const StepFit& s : c.steps)
      json["steps"].push_back({{"begin_s", s.begin.value()},
                               {"from_W", s.from.value()},
                               {"to_W", s.to.value()},
                               {"capacitance_s", s.capacitance.value()},
                               {"is_ramp", s.is_ramp},
                               {"ramp_s", s.ramp.value()}});
    if (c.reference) {
      const ReferenceFit& f = *c.reference;
      const auto model = [](const ModelFit& m) {
        return nlohmann::ordered_json{
            {"capacitance_s", m.capacitance.value()},   {"window_s", m.window.value()},
            {"window_least_s", m.window_least.value()}, {"window_most_s", m.window_most.value()},
            {"clock_offset_s", m.clock_offset.value()}, {"rms_W", m.rms.value()},
            {"rms_new_values_W", m.new_rms.value()}};
      };
      json["reference"] = {{"gain", f.best().gain},
                           {"offset_W", f.best().offset.value()},
                           {"as_read_rms_W", f.unscaled_rms.value()},
                           {"scaled_rms_W", f.raw_rms.value()},
                           {"scaled_rms_new_values_W", f.raw_new_rms.value()},
                           {"symmetric", model(f.symmetric)},
                           {"backward", model(f.backward)},
                           {"window", model(f.window)}};
    }
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace gpusim::power
