#include "energy/accelwattch/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "device_sim/base/csv.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/base/nearest_name.h"
#include "energy/accelwattch/builtin_models.h"
#include "energy/quantities.h"

namespace gpusim::accelwattch {
namespace {

using energy::quantity;

constexpr const char* kSchema = "gpusim-accelwattch-1";

size_t component_index(ChipModel& chip, const std::string& name) {
  const int found = chip.find_component(name);
  if (found >= 0) return static_cast<size_t>(found);
  chip.components.push_back(name);
  chip.fixed.emplace_back();
  return chip.components.size() - 1;
}

void read_counters(ChipModel& chip, const JsonObject& counters) {
  for (const auto& item : counters.json().items()) {
    const JsonObject o = counters.object(item.key());
    Counter counter{item.key(), o.text("unit"), {}};
    o.text("source");
    if (!o.get("costs").is_array() || o.get("costs").empty()) o.fail("\"costs\" must be a list");
    for (const auto& cost : o.get("costs")) {
      const JsonObject c(cost, o.at("costs"));
      c.text_or("from", "");
      counter.costs.push_back(
          {component_index(chip, c.text("component")), energy::picojoules(c.number("energy_pJ"))});
      c.no_other_keys();
    }
    o.no_other_keys();
    chip.counters.push_back(std::move(counter));
  }
  if (chip.counters.empty()) counters.fail("there is no counter");
}

void read_statics(ChipModel& chip, const JsonObject& statics) {
  for (size_t m = 0; m < kMixes; ++m) {
    const JsonObject o = statics.object(std::string(kMixNames[m]));
    StaticCategory& c = chip.statics[m];
    c.first_lane = Watts(o.number("first_lane_W"));
    c.added_lane = Watts(o.number("added_lane_W"));
    const std::string form = o.text("form");
    if (form != "linear" && form != "half_warp")
      o.fail("\"form\" is " + form + "; it must be linear or half_warp");
    c.form = form == "linear" ? LaneForm::kLinear : LaneForm::kHalfWarp;
    o.no_other_keys();
  }
  statics.no_other_keys();
}

std::shared_ptr<ChipModel> read_chip(const JsonObject& file) {
  auto chip = std::make_shared<ChipModel>();
  chip->name = file.text("name");
  chip->title = file.text("title");
  chip->conditions = file.text("conditions");
  for (const char* key : {"sources", "licence"}) file.has(key);
  const JsonObject o = file.object("chip");
  chip->sms = o.number("sms");
  chip->lanes = o.number("lanes");
  chip->clock = quantity<Hertz>(o.object("clock"));
  chip->technology_nm = static_cast<int>(o.number("technology_nm"));
  chip->temperature_c = o.number("temperature_C");
  o.no_other_keys();
  if (chip->sms < 1 || chip->clock.value() <= 0) o.fail("sms and clock must be positive");
  chip->constant = quantity<Watts>(file.object("constant"));
  chip->idle_sm = quantity<Watts>(file.object("idle_sm"));
  read_statics(*chip, file.object("static"));
  read_counters(*chip, file.object("counters"));
  if (file.has("fixed")) {
    const JsonObject fixed = file.object("fixed");
    for (const auto& item : fixed.json().items())
      chip->fixed[component_index(*chip, item.key())] = quantity<Watts>(fixed.object(item.key()));
  }
  if (file.has("technologies")) {
    const JsonObject list = file.object("technologies");
    for (const auto& item : list.json().items()) {
      const JsonObject t = list.object(item.key());
      t.text("source");
      chip->technologies.push_back({static_cast<int>(t.number("nm")), t.number("dynamic"),
                                    t.number("idle"), t.number("static")});
      t.no_other_keys();
    }
  }
  return chip;
}

}  // namespace

int ChipModel::find_counter(std::string_view wanted) const {
  for (size_t i = 0; i < counters.size(); ++i)
    if (lower(counters[i].name) == lower(wanted)) return static_cast<int>(i);
  return -1;
}

int ChipModel::find_component(std::string_view wanted) const {
  for (size_t i = 0; i < components.size(); ++i)
    if (components[i] == wanted) return static_cast<int>(i);
  return -1;
}

const Technology& ChipModel::technology(int nm) const {
  std::string known = fmt::format("{} nm (its own)", technology_nm);
  for (const Technology& t : technologies) {
    if (t.nm == nm) return t;
    known += fmt::format(", {} nm", t.nm);
  }
  static const Technology kOwn;
  if (nm == technology_nm) return kOwn;
  throw Error(fmt::format("model {} has no scaling to {} nm; it knows {}", name, nm, known));
}

std::vector<Model> parse_model(const std::string& text, const std::string& origin) {
  const nlohmann::ordered_json json = parse_json(text, origin);
  const JsonObject file(json, origin);
  if (const std::string schema = file.text("schema"); schema != kSchema)
    file.fail(fmt::format("\"schema\" is {}; this version reads {}", schema, kSchema));
  const std::shared_ptr<const ChipModel> chip = read_chip(file);
  std::vector<Model> models;
  const JsonObject variants = file.object("variants");
  for (const auto& item : variants.json().items()) {
    const JsonObject o = variants.object(item.key());
    Model model{chip, item.key(), o.text("title"), std::vector<double>(chip->counters.size())};
    const JsonObject scale = o.object("scale");
    for (const auto& factor : scale.json().items()) {
      const int counter = chip->find_counter(factor.key());
      if (counter < 0) scale.fail("there is no counter " + factor.key());
      model.scale[static_cast<size_t>(counter)] = scale.number(factor.key());
    }
    o.no_other_keys();
    models.push_back(std::move(model));
  }
  file.no_other_keys();
  if (models.empty()) variants.fail("there is no variant");
  return models;
}

std::vector<std::string> builtin_model_names() {
  std::vector<std::string> names;
  for (const BuiltinModel& file : builtin_model_files())
    for (const Model& m : parse_model(file.text, file.name))
      names.push_back(m.chip->name + "/" + m.variant);
  return names;
}

Model find_model(const std::string& name) {
  std::string base = name, variant;
  std::vector<Model> models;
  const size_t json = name.find(".json");
  if (json != std::string::npos) {
    base = name.substr(0, json + 5);
    if (name.size() > base.size() + 1) variant = name.substr(base.size() + 1);
    models = parse_model(read_text(base), base);
  } else {
    const size_t slash = name.find('/');
    base = name.substr(0, slash);
    if (slash != std::string::npos) variant = name.substr(slash + 1);
    for (const BuiltinModel& file : builtin_model_files()) {
      auto candidates = parse_model(file.text, file.name);
      if (candidates.front().chip->name == base) models = std::move(candidates);
    }
  }
  for (const Model& m : models)
    if (variant.empty() || m.variant == variant) return m;
  if (models.empty())
    throw Error(fmt::format("there is no model {}{}; there are: {}, and files that end in .json",
                            name, did_you_mean(name, builtin_model_names()),
                            fmt::join(builtin_model_names(), ", ")));
  std::vector<std::string> names;
  for (const Model& m : models) names.push_back(m.variant);
  throw Error(fmt::format("model {} has no variant {}{}; it has: {}", base, variant,
                          did_you_mean(variant, names), fmt::join(names, ", ")));
}

Mix mix_of(const ChipModel& chip, const std::vector<double>& counts) {
  const auto any = [&](std::initializer_list<const char*> names) {
    for (const char* n : names) {
      const int i = chip.find_counter(n);
      if (i >= 0 && counts[static_cast<size_t>(i)] > 0) return true;
    }
    return false;
  };
  UnitUse use;
  use.int_add = any({"INT_ACC"});
  use.int_mul = any({"INT_MUL_ACC", "INT_MUL24_ACC", "INT_MUL32_ACC", "INT_DIV_ACC"});
  use.fp = any({"FP_ACC", "FP_MUL_ACC", "FP_DIV_ACC"});
  use.dp = any({"DP_ACC", "DP_MUL_ACC", "DP_DIV_ACC"});
  use.sfu = any({"FP_SQRT_ACC", "FP_LG_ACC", "FP_SIN_ACC", "FP_EXP_ACC"});
  use.tensor = any({"TENSOR_ACC"});
  use.tex = any({"TEX_ACC"});
  use.l1 = any({"DC_RH", "DC_RM", "DC_WH", "DC_WM"});
  use.shared = any({"SHRD_ACC"});
  use.l2 = any({"L2_RH", "L2_RM", "L2_WH", "L2_WM"});
  return classify(use);
}

double temperature_factor(double celsius, double reference_c, double doubling_k) {
  if (!(doubling_k > 0) || !std::isfinite(celsius))
    throw Error("a temperature factor needs a temperature and a positive doubling distance");
  return std::exp2((celsius - reference_c) / doubling_k);
}

Watts PowerBreakdown::total() const {
  return std::accumulate(dynamic.begin(), dynamic.end(), idle + constant + statics);
}

PowerBreakdown power(const Model& model, const KernelActivity& kernel, const Scaling& scaling) {
  const ChipModel& chip = *model.chip;
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("kernel {}: {}", kernel.name, what));
  };
  if (!(kernel.time.value() > 0) || !kernel.time.is_finite())
    fail(fmt::format("its time is {} s; it must be positive", kernel.time.value()));
  if (kernel.counts.size() != chip.counters.size()) fail("its counters are another model's");
  if (!(kernel.voltage > 0)) fail("its voltage must be positive");
  if (kernel.active_sms > chip.sms * (1 + 1e-9))
    fail(fmt::format("{} active SMs; {} has {}", kernel.active_sms, chip.name, chip.sms));
  if (kernel.lanes > chip.lanes * (1 + 1e-9))
    fail(fmt::format("{} active lanes per warp; there are {}", kernel.lanes, chip.lanes));
  PowerBreakdown p;
  p.dynamic = chip.fixed;
  for (size_t i = 0; i < chip.counters.size(); ++i) {
    const double count = kernel.counts[i];
    if (!(count >= 0) || !std::isfinite(count))
      fail(fmt::format("counter {} is {}", chip.counters[i].name, count));
    for (const CounterCost& cost : chip.counters[i].costs)
      p.dynamic[cost.component] += cost.initial * (model.scale[i] * count) / kernel.time;
  }
  const double v = kernel.voltage, active = std::min(kernel.active_sms, chip.sms);
  for (Watts& w : p.dynamic) w = w * (v * v * scaling.technology.dynamic);
  const StaticCategory& category = chip.statics[static_cast<size_t>(kernel.mix)];
  p.statics = static_power(category, std::min(kernel.lanes, chip.lanes), active, chip.sms) *
              (v * scaling.technology.statics * scaling.temperature_factor);
  p.idle = chip.idle_sm * (chip.sms - active) *
           (v * scaling.technology.idle * scaling.temperature_factor);
  p.constant = chip.constant * (scaling.voltage_moves_constant ? v * v : 1);
  return p;
}

}  // namespace gpusim::accelwattch
