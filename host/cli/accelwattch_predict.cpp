// `gpusim energy predict`: power from counters. docs/accelwattch.md.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "energy/accelwattch/prediction.h"
#include "energy/accelwattch/report.h"
#include "host/cli/commands.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace aw = accelwattch;

struct PredictOptions {
  std::string activity, model, software, sheet, html, svg, json, perfetto;
  std::vector<std::string> take = {"L2_RH", "L2_RM", "L2_WH", "L2_WM", "NOC_A"};
  std::optional<double> clock_mhz, celsius, doubling_k, lanes, active_sms, seconds;
  double ipc = 2;
  int nm = 0;
  bool voltage_follows_clock = false, voltage_moves_constant = false;
};

double positive(const char* option, double value) {
  if (!(value > 0)) throw Error(fmt::format("{} {}: it must be positive", option, value));
  return value;
}

bool is_json(const std::string& path) { return trim(read_text(path)).starts_with('{'); }

int predict(const PredictOptions& options) {
  aw::ActivityOptions reading;
  if (options.clock_mhz) {
    const double mhz = positive("--clock", *options.clock_mhz);
    if (mhz < 1 || mhz > 10000) throw Error(fmt::format("--clock {}: megahertz are expected", mhz));
    reading.clock = aw::Hertz(mhz * 1e6);
  }
  reading.voltage_follows_clock = options.voltage_follows_clock;
  reading.lanes = options.lanes;
  reading.active_sms = options.active_sms;
  reading.ipc = options.ipc;
  if (options.seconds) reading.seconds = aw::Seconds(positive("--seconds", *options.seconds));
  std::string name = options.model;
  if (name.empty()) name = is_json(options.activity) ? "gv100/ptx-sim" : "gv100/hw";
  const aw::Model model = aw::find_model(name);
  aw::ActivityFile activity = aw::read_activity(options.activity, model, reading);
  if (!options.software.empty()) {
    const aw::ActivityFile other = aw::read_activity(options.software, model, reading);
    aw::replace_counters(activity, other, model, options.take);
    for (const auto& counter : options.take)
      activity.notes.push_back(fmt::format("{} is taken from {}", counter, options.software));
  }
  aw::Scaling scaling;
  scaling.voltage_moves_constant = options.voltage_moves_constant;
  if (options.nm) scaling.technology = model.chip->technology(options.nm);
  if (options.celsius.has_value() != options.doubling_k.has_value())
    throw Error(
        "--temperature and --leakage-doubling belong together: the model has no number "
        "of its own for how leakage grows");
  if (options.celsius)
    scaling.temperature_factor =
        aw::temperature_factor(*options.celsius, model.chip->temperature_c, *options.doubling_k);
  const aw::Prediction p = aw::predict(model, activity, scaling);
  if (!options.perfetto.empty() && !p.is_sliced)
    throw Error("--perfetto shows power over time; this needs a column start_s");

  console::out("{}/{}: {}\n\n{}\n", model.chip->name, model.variant, model.title,
               aw::prediction_table(p));
  console::out("{}\n", aw::component_table(p.sheet));
  console::out("{:.4g} J in {:.4g} s, {:.3f} W on average\n", p.energy().value(), p.time().value(),
               (p.energy() / p.time()).value());
  if (p.has_measured) console::out("{}\n", aw::accuracy_line(p.sheet, aw::accuracy(p.sheet)));
  for (const auto& note : p.sheet.notes) console::out("note: {}\n", note);

  const std::string title = "Power of " + options.activity;
  const auto chart = [&] {
    return p.is_sliced ? aw::time_chart(aw::time_series(p), title)
                       : aw::component_chart(p.sheet, title);
  };
  if (!options.sheet.empty()) write_output_file("--sheet", options.sheet, aw::prediction_csv(p));
  if (!options.svg.empty()) write_output_file("--svg", options.svg, chart());
  if (!options.html.empty())
    write_output_file("--html", options.html, aw::prediction_page(p.sheet, chart(), title));
  if (!options.perfetto.empty())
    write_output_file("--perfetto", options.perfetto, aw::perfetto_trace(p));
  if (!options.json.empty())
    write_output_file("--json", options.json,
                      aw::prediction_json(p).dump(
                          2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                          "\n");
  return 0;
}

}  // namespace

void add_energy_predict(CLI::App& energy, Action& action) {
  const auto o = std::make_shared<PredictOptions>();
  CLI::App* c = energy.add_subcommand(
      "predict", "Power of kernels from counters (CSV, Nsight Compute) or from our tallies");
  c->add_option("ACTIVITY", o->activity,
                "Counters as CSV, an export of Nsight Compute, or statistics of gpusim run")
      ->required();
  c->add_option("--model", o->model,
                "CHIP/VARIANT or FILE.json/VARIANT (gv100/hw; of our tallies gv100/ptx-sim)");
  c->add_option("--software", o->software, "Hybrid: take some counters from this file instead");
  c->add_option("--take", o->take, "Which ones, separated by commas (L2 cache and NoC)")
      ->transform(list_value())
      ->delimiter(',');
  c->add_option("--clock", o->clock_mhz, "MHz (the model's)");
  c->add_flag("--voltage-follows-clock", o->voltage_follows_clock,
              "V is proportional to the clock; dynamic power goes with V^2, static power with V");
  c->add_flag("--voltage-moves-constant", o->voltage_moves_constant,
              "Constant power goes with V^2, as in AccelWattch's code");
  c->add_option("--technology", o->nm, "Scale to this node, in nm");
  c->add_option("--temperature", o->celsius, "Of the chip, in degrees Celsius");
  c->add_option("--leakage-doubling", o->doubling_k, "Kelvin that double static power");
  c->add_option("--lanes", o->lanes, "Active lanes per warp, where the file does not say (32)");
  c->add_option("--active-sms", o->active_sms, "Active SMs, where the file does not say (all)");
  c->add_option("--ipc", o->ipc, "Of our tallies: warp instructions per SM and cycle (2)");
  c->add_option("--seconds", o->seconds, "Of our tallies: how long the run takes");
  c->add_option("--sheet", o->sheet, "Write watts per component as CSV, for `energy validate`");
  c->add_option("--svg", o->svg, "Write a chart: components, or power over time");
  c->add_option("--html", o->html, "Write a page with chart and tables");
  c->add_option("--json", o->json, "Write all figures");
  c->add_option("--perfetto", o->perfetto, "Write power over time as counter tracks of a trace");
  c->callback([o, &action] { action = [o] { return predict(*o); }; });
}

}  // namespace gpusim::host
