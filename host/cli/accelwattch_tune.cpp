// `gpusim energy tune`: the model's numbers from measurements. docs/accelwattch.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "energy/accelwattch/model.h"
#include "energy/accelwattch/report.h"
#include "energy/accelwattch/tuning.h"
#include "host/cli/commands.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace aw = accelwattch;
using Json = nlohmann::ordered_json;

struct TuneCommand {
  std::string sheet, constant_file, static_file, idle_file, model,
      objective = "relative", bounds = "paper", order = "paper", linear_term = "code", json;
  std::optional<double> lower, upper, constant_w, clock_mhz;
  std::vector<std::string> constraints;
  double sms = 80;
  bool leave_one_out = false;
};

const char* state_text(aw::FactorState state) {
  switch (state) {
    case aw::FactorState::kFree:
      return "free";
    case aw::FactorState::kAtLower:
      return "at its lower bound";
    case aw::FactorState::kAtUpper:
      return "at its upper bound";
    case aw::FactorState::kHeld:
      return "held";
    case aw::FactorState::kUnused:
      return "no kernel uses it";
  }
  return "";
}

// Initial energy times factor of the first counter of each component: what an access costs before.
std::map<std::string, double> energies_of(const aw::Model& model) {
  std::map<std::string, double> energies;
  for (size_t i = 0; i < model.chip->counters.size(); ++i)
    for (const aw::CounterCost& cost : model.chip->counters[i].costs)
      if (model.scale[i] > 0)
        energies.try_emplace(model.chip->components[cost.component],
                             cost.initial.value() * model.scale[i]);
  return energies;
}

Json tune_dynamic(const TuneCommand& command) {
  const aw::Sheet sheet = aw::read_sheet(command.sheet, {.needs_model = false});
  aw::TuneOptions options;
  options.relative = command.objective == "relative";
  options.lower = command.lower.value_or(command.bounds == "code" ? 0.1 : 0.001);
  options.upper = command.upper.value_or(1000);
  options.linear_term_as_printed = command.linear_term == "paper";
  std::optional<aw::Model> model;
  if (!command.model.empty()) model = aw::find_model(command.model);
  if (command.order == "paper") options.orders = aw::paper_orders(sheet);
  if (command.order == "code") {
    if (!model)
      throw Error(
          "--order code orders energies per access: --model must say whose factors the "
          "sheet's watts were computed with");
    options.orders = aw::code_orders(sheet, energies_of(*model));
  }
  for (const auto& text : command.constraints) options.orders.push_back(aw::parse_order(text));
  const aw::TuneResult r = aw::tune(sheet, options);

  console::out("{:<12}  {:>12}  {}\n", "component", "factor", "state");
  Json factors = Json::object();
  for (const aw::TunedFactor& f : r.factors) {
    const std::string held =
        f.held_by.empty() ? "" : fmt::format(": {}", fmt::join(f.held_by, ", "));
    console::out("{:<12}  {:>12.6g}  {}{}\n", f.component, f.factor, state_text(f.state), held);
    factors[f.component] = {{"factor", f.factor}, {"state", state_text(f.state)}};
    if (!f.held_by.empty()) factors[f.component]["held_by"] = f.held_by;
  }
  console::out("\nbefore: {}\nafter:  {}\n", aw::accuracy_line(r.before, r.before_accuracy),
               aw::accuracy_line(r.after, r.after_accuracy));
  const aw::KktResidual& kkt = r.solution.kkt;
  console::out(
      "KKT residual {:.2e} (stationarity {:.1e}, feasibility {:.1e}, complementarity {:.1e}, "
      "dual {:.1e}), {} steps\n",
      kkt.worst(), kkt.stationarity, kkt.feasibility, kkt.complementarity, kkt.dual,
      r.solution.steps);
  console::out("condition of the columns {:.3g}\n", r.condition);
  for (const auto& group : r.inseparable)
    console::out("note: these kernels cannot tell apart: {}\n", fmt::join(group, ", "));
  if (options.linear_term_as_printed)
    console::out(
        "note: the linear term as printed in equation 14 has half the weight that least "
        "squares have\n");
  for (const auto& note : sheet.notes) console::out("note: {}\n", note);

  Json json = {{"sheet", command.sheet},
               {"objective", command.objective},
               {"lower", options.lower},
               {"upper", options.upper},
               {"linear_term", command.linear_term},
               {"constraints", Json::array()},
               {"factors", factors},
               {"value", r.solution.objective},
               {"kkt_residual",
                {{"worst", kkt.worst()},
                 {"stationarity", kkt.stationarity},
                 {"feasibility", kkt.feasibility},
                 {"complementarity", kkt.complementarity},
                 {"dual", kkt.dual}}},
               {"condition", r.condition},
               {"inseparable", r.inseparable},
               {"before", aw::accuracy_json(r.before, r.before_accuracy)},
               {"after", aw::accuracy_json(r.after, r.after_accuracy)}};
  for (const auto& o : options.orders) json["constraints"].push_back(o.text());
  if (command.leave_one_out) {
    const aw::Accuracy a = aw::leave_one_out(sheet, options);
    console::out("each kernel left out in turn: {}\n", aw::accuracy_line(sheet, a));
    json["leave_one_out"] = aw::accuracy_json(sheet, a);
  }
  if (model) {  // a variant for a model file
    Json scale = Json::object();
    for (size_t i = 0; i < model->chip->counters.size(); ++i) {
      if (model->scale[i] == 0) continue;
      const aw::Counter& counter = model->chip->counters[i];
      const std::string& component = model->chip->components[counter.costs[0].component];
      double factor = 1;
      for (const aw::TunedFactor& f : r.factors)
        if (lower(f.component) == lower(component)) factor = f.factor;
      scale[counter.name] = model->scale[i] * factor;
    }
    json["variant"] = {{"title", "tuned from " + command.model}, {"scale", scale}};
  }
  return json;
}

Json tune_constant(const TuneCommand& command, aw::Watts& constant) {
  const aw::ConstantFit fit =
      aw::fit_constant_power(aw::read_frequency_curves(read_csv(command.constant_file)));
  constant = fit.constant;
  console::out(
      "constant power {:.4f} W (each workload for itself: {:.4f} to {:.4f} W), r {:.4f}, mean "
      "error {:.3f} %\n",
      fit.constant.value(), fit.least.value(), fit.most.value(), fit.pearson_r, fit.mape);
  console::out("{:<20}  {:>12}  {:>10}  {:>8}  {:>10}\n", "workload", "beta W/GHz^3", "tau W/GHz",
               "rms %", "alone: W");
  Json json = {{"constant_W", fit.constant.value()}, {"least_W", fit.least.value()},
               {"most_W", fit.most.value()},         {"pearson_r", fit.pearson_r},
               {"mape_percent", fit.mape},           {"workloads", Json::object()}};
  for (size_t i = 0; i < fit.curves.size(); ++i) {
    const aw::CubicFit& c = fit.curves[i];
    console::out("{:<20}  {:>12.5g}  {:>10.5g}  {:>8.3f}  {:>10.3f}\n", c.workload, c.beta, c.tau,
                 c.rms_percent, fit.separate[i].constant.value());
    json["workloads"][c.workload] = {{"beta_W_per_GHz3", c.beta},
                                     {"tau_W_per_GHz", c.tau},
                                     {"rms_percent", c.rms_percent},
                                     {"constant_alone_W", fit.separate[i].constant.value()}};
  }
  console::out("\n");
  return json;
}

Json tune_static(const TuneCommand& command, aw::Watts constant) {
  std::optional<aw::Hertz> clock;
  if (command.clock_mhz) clock = aw::Hertz(*command.clock_mhz * 1e6);
  Json json = Json::object();
  console::out("{:<14}  {:>12}  {:>12}  {:<9}  {:>12}  {:>13}\n", "mix", "first lane W",
               "added lane W", "form", "linear rms %", "half-warp rms %");
  for (const aw::MixFit& fit :
       aw::fit_static_power(read_csv(command.static_file), constant, clock)) {
    const aw::StaticCategory& c = fit.lanes.category;
    const char* form = c.form == aw::LaneForm::kLinear ? "linear" : "half_warp";
    console::out("{:<14}  {:>12.4f}  {:>12.5f}  {:<9}  {:>12.3f}  {:>13.3f}\n", fit.mix,
                 c.first_lane.value(), c.added_lane.value(), form, fit.lanes.linear_rms_percent,
                 fit.lanes.half_warp_rms_percent);
    json[fit.mix] = {{"first_lane_W", c.first_lane.value()},
                     {"added_lane_W", c.added_lane.value()},
                     {"form", form},
                     {"worst_fit_rms_percent", fit.worst_rms_percent}};
  }
  console::out("\n");
  return json;
}

Json tune_idle(const TuneCommand& command, aw::Watts constant) {
  if (!(command.sms >= 1)) throw Error(fmt::format("--sms {}: at least 1", command.sms));
  const aw::IdleFit fit = aw::fit_idle_power(read_csv(command.idle_file), command.sms, constant);
  console::out("power of an idle SM {:.5f} W (geometric mean)\n", fit.per_sm.value());
  Json json = {{"idle_sm_W", fit.per_sm.value()}, {"workloads_W", Json::object()}};
  for (const auto& [name, watts] : fit.workloads) {
    console::out("  {:<20}  {:>9.5f} W\n", name, watts.value());
    json["workloads_W"][name] = watts.value();
  }
  console::out("\n");
  return json;
}

int tune(const TuneCommand& command) {
  if (command.sheet.empty() && command.constant_file.empty() && command.static_file.empty() &&
      command.idle_file.empty())
    throw Error("there is nothing to tune: give a SHEET, --constant, --static or --idle");
  if (command.constant_w && !(*command.constant_w >= 0))
    throw Error("--constant-power must not be negative");
  if (command.clock_mhz && !(*command.clock_mhz >= 1 && *command.clock_mhz <= 10000))
    throw Error("--clock: megahertz are expected");
  Json json = Json::object();
  std::optional<aw::Watts> constant;
  if (command.constant_w) constant = aw::Watts(*command.constant_w);
  if (!command.constant_file.empty()) {
    aw::Watts fitted;
    json["constant"] = tune_constant(command, fitted);
    if (!constant) constant = fitted;
  }
  if ((!command.static_file.empty() || !command.idle_file.empty()) && !constant)
    throw Error(
        "static and idle power need the constant power: --constant FILE or "
        "--constant-power WATTS");
  if (!command.static_file.empty()) json["static"] = tune_static(command, *constant);
  if (!command.idle_file.empty()) json["idle"] = tune_idle(command, *constant);
  if (!command.sheet.empty()) json["dynamic"] = tune_dynamic(command);
  if (!command.json.empty())
    write_output_file("--json", command.json,
                      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return 0;
}

}  // namespace

void add_energy_tune(CLI::App& energy, Action& action) {
  const auto o = std::make_shared<TuneCommand>();
  CLI::App* c = energy.add_subcommand("tune", "Fit a power model to measurements");
  c->add_option("SHEET", o->sheet,
                "CSV: a row per microbenchmark; a column of watts per component, computed with the "
                "factors to be tuned; measured_W");
  c->add_option("--constant", o->constant_file,
                "CSV: workload, frequency_MHz, power_W; fits constant power");
  c->add_option("--static", o->static_file,
                "CSV: mix, lanes, frequency_MHz, power_W; fits static power by lanes");
  c->add_option("--idle", o->idle_file, "CSV: workload, active_sms, power_W; fits idle SMs");
  c->add_option("--constant-power", o->constant_w, "Watts, where --constant does not fit them");
  c->add_option("--clock", o->clock_mhz, "MHz at which static power is given (the fastest)");
  c->add_option("--sms", o->sms, "SMs of the chip (80)");
  c->add_option("--objective", o->objective,
                "relative: errors in percent, as the paper; absolute: in watts, as its code")
      ->check(CLI::IsMember({"relative", "absolute"}));
  c->add_option("--bounds", o->bounds, "paper: 0.001 to 1000; code: 0.1 to 1000")
      ->check(CLI::IsMember({"paper", "code"}));
  c->add_option("--lower", o->lower, "Least factor");
  c->add_option("--upper", o->upper, "Largest factor");
  c->add_option("--order", o->order,
                "paper: orders factors; code: orders energies per access (--model); none")
      ->check(CLI::IsMember({"paper", "code", "none"}));
  c->add_option("--constraint", o->constraints,
                "\"INTP <= 1.5 FPUP\", \"TEXP >= 0.2\"; repeatable");
  c->add_option("--linear-term", o->linear_term,
                "code: least squares; paper: equation 14 as printed")
      ->check(CLI::IsMember({"paper", "code"}));
  c->add_option("--model", o->model, "CHIP/VARIANT whose factors the sheet was computed with");
  c->add_flag("--leave-one-out", o->leave_one_out, "Judge each kernel by factors tuned without it");
  c->add_option("--json", o->json, "Write factors and figures");
  c->callback([o, &action] { action = [o] { return tune(*o); }; });
}

}  // namespace gpusim::host
