#include "energy/accelwattch/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "energy/accelwattch/components.h"

namespace gpusim::accelwattch {
namespace {

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n;#") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

Joules Prediction::energy() const {
  Joules sum;
  for (size_t k = 0; k < kernels.size(); ++k) sum += sheet.kernels[k].model * kernels[k].time;
  return sum;
}

Seconds Prediction::time() const {
  Seconds sum;
  for (const KernelActivity& k : kernels) sum += k.time;
  return sum;
}

Prediction predict(const Model& model, const ActivityFile& activity, const Scaling& scaling) {
  Prediction p{model, activity.kernels, activity.is_sliced, {}, true};
  const ChipModel& chip = *model.chip;
  std::vector<PowerBreakdown> powers;
  for (const KernelActivity& k : activity.kernels) powers.push_back(power(model, k, scaling));
  // The model's 22 components always, others where something happened.
  std::vector<size_t> columns;
  for (const ComponentInfo& info : all_components().subspan(0, kDynamicComponents)) {
    const int c = chip.find_component(info.name);
    if (c >= 0) columns.push_back(static_cast<size_t>(c));
  }
  for (size_t c = 0; c < chip.components.size(); ++c) {
    const bool shown = std::find(columns.begin(), columns.end(), c) != columns.end();
    const bool any = std::any_of(powers.begin(), powers.end(),
                                 [&](const PowerBreakdown& b) { return b.dynamic[c].value() > 0; });
    if (!shown && any) columns.push_back(c);
  }
  for (const size_t c : columns) p.sheet.components.push_back(chip.components[c]);
  for (const auto name : {kIdle, kConstant, kStatic}) p.sheet.components.emplace_back(name);
  p.sheet.notes = activity.notes;
  for (size_t i = 0; i < chip.counters.size(); ++i) {
    const bool counted = std::any_of(p.kernels.begin(), p.kernels.end(),
                                     [&](const KernelActivity& k) { return k.counts[i] > 0; });
    if (counted && model.scale[i] == 0)
      p.sheet.notes.push_back(fmt::format("variant {} has no factor for {}: it takes no power",
                                          model.variant, chip.counters[i].name));
  }
  for (size_t i = 0; i < powers.size(); ++i) {
    const KernelActivity& k = p.kernels[i];
    SheetKernel row{k.suite, k.name, i + 1, {}, powers[i].total(), k.measured};
    for (const size_t c : columns) row.component.push_back(powers[i].dynamic[c]);
    row.component.insert(row.component.end(),
                         {powers[i].idle, powers[i].constant, powers[i].statics});
    p.has_measured = p.has_measured && k.measured.value() > 0;
    p.sheet.kernels.push_back(std::move(row));
  }
  return p;
}

std::string prediction_table(const Prediction& p) {
  size_t width = 6;
  for (const SheetKernel& k : p.sheet.kernels) width = std::max(width, k.name.size());
  width = std::min<size_t>(width, 48);
  std::string text = fmt::format("{:<{}}  {:>11}  {:>6}  {:>5}  {:<13}  {:>9}  {:>11}\n",
                                 p.is_sliced ? "slice" : "kernel", width, "time s", "SMs", "lanes",
                                 "mix", "power W", "energy J");
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const KernelActivity& k = p.kernels[i];
    const Watts w = p.sheet.kernels[i].model;
    text += fmt::format("{:<{}}  {:>11.4g}  {:>6.2f}  {:>5.2f}  {:<13}  {:>9.3f}  {:>11.4g}\n",
                        k.name.substr(0, width), width, k.time.value(), k.active_sms, k.lanes,
                        name(k.mix), w.value(), (w * k.time).value());
  }
  return text;
}

std::string prediction_csv(const Prediction& p) {
  std::string text = p.is_sliced ? "suite,kernel,start_s,time_s" : "suite,kernel";
  for (const auto& c : p.sheet.components) text += "," + c;
  text += p.has_measured ? ",model_total_W,measured_W\n" : ",model_total_W\n";
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const SheetKernel& row = p.sheet.kernels[i];
    text += csv_text(row.suite) + "," + csv_text(row.name);
    if (p.is_sliced)
      text += fmt::format(",{:.9g},{:.9g}", p.kernels[i].start.value(), p.kernels[i].time.value());
    for (const Watts w : row.component) text += fmt::format(",{:.9g}", w.value());
    text += fmt::format(",{:.9g}", row.model.value());
    text += p.has_measured ? fmt::format(",{:.9g}\n", row.measured.value()) : "\n";
  }
  return text;
}

nlohmann::ordered_json prediction_json(const Prediction& p) {
  nlohmann::ordered_json json = {{"model", p.model.chip->name + "/" + p.model.variant},
                                 {"chip", p.model.chip->title},
                                 {"notes", p.sheet.notes},
                                 {"time_s", p.time().value()},
                                 {"energy_J", p.energy().value()},
                                 {"average_power_W", (p.energy() / p.time()).value()}};
  auto& list = json[p.is_sliced ? "slices" : "kernels"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const KernelActivity& k = p.kernels[i];
    const SheetKernel& row = p.sheet.kernels[i];
    nlohmann::ordered_json entry = {{"kernel", k.name},
                                    {"time_s", k.time.value()},
                                    {"active_sms", k.active_sms},
                                    {"lanes", k.lanes},
                                    {"mix", name(k.mix)},
                                    {"power_W", row.model.value()},
                                    {"energy_J", (row.model * k.time).value()}};
    if (p.is_sliced) entry["start_s"] = k.start.value();
    if (k.measured.value() > 0) entry["measured_W"] = k.measured.value();
    for (size_t c = 0; c < p.sheet.components.size(); ++c)
      entry["components_W"][p.sheet.components[c]] = row.component[c].value();
    list.push_back(std::move(entry));
  }
  return json;
}

TimeSeries time_series(const Prediction& p) {
  TimeSeries series;
  for (const KernelActivity& k : p.kernels) {
    series.start_s.push_back(k.start.value());
    series.end_s.push_back((k.start + k.time).value());
  }
  series.watts = grouped_components(p.sheet);
  return series;
}

std::string perfetto_trace(const Prediction& p) {
  // Whole traces are written at once; a value holds until the next one of its track.
  auto events = nlohmann::ordered_json::array();
  const auto sample = [&](const std::string& track, double seconds, double watts) {
    events.push_back({{"name", track},
                      {"ph", "C"},
                      {"pid", 1},
                      {"ts", seconds * 1e6},
                      {"args", {{"W", watts}}}});
  };
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"args", {{"name", "power of " + p.model.chip->name}}}});
  const size_t components = p.sheet.components.size();
  for (size_t c = 0; c <= components; ++c) {
    const std::string track = c == components ? "total, W" : p.sheet.components[c] + ", W";
    bool any = false;
    for (const SheetKernel& row : p.sheet.kernels)
      any = any || c == components || row.component[c].value() > 0;
    if (!any) continue;
    for (size_t i = 0; i < p.kernels.size(); ++i) {
      const SheetKernel& row = p.sheet.kernels[i];
      const Seconds begin = p.kernels[i].start, end = begin + p.kernels[i].time;
      sample(track, begin.value(), (c == components ? row.model : row.component[c]).value());
      const bool gap =
          i + 1 == p.kernels.size() ||
          p.kernels[i + 1].start.value() > end.value() + 1e-6 * p.kernels[i].time.value();
      if (gap) sample(track, end.value(), 0);
    }
  }
  const nlohmann::ordered_json trace = {{"traceEvents", events}, {"displayTimeUnit", "ns"}};
  return trace.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gpusim::accelwattch
