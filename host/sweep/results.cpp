#include "host/sweep/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "energy/report.h"
#include "energy/target.h"

namespace gpusim::sweep {
namespace {

std::vector<energy::Estimate> estimates(const std::vector<energy::Target>& targets,
                                        const Point& p) {
  std::vector<energy::Estimate> list;
  if (p.instructions == 0) return list;
  energy::Activity a;
  a.name = p.label;
  a.cores = p.cores;
  a.classes = p.classes;
  a.memory_is_placed = p.memory_is_placed;
  for (const Part& part : p.functions) a.functions.push_back({part.name, part.classes});
  for (const Part& part : p.lines) a.lines.push_back({part.name, part.classes});
  a.longest_cores = p.longest_cores;
  for (const energy::Target& target : targets) list.push_back(energy::estimate(target, a, {}));
  return list;
}

Row row_of(const std::vector<const Point*>& repetitions) {
  Row row;
  row.point = *repetitions[0];
  row.repetitions = repetitions.size();
  std::vector<double> seconds, mips;
  for (const Point* p : repetitions) {
    seconds.push_back(p->seconds);
    mips.push_back(p->mips);
  }
  row.seconds = median(seconds);
  row.mips = median(mips);
  row.mips_low = *std::min_element(mips.begin(), mips.end());
  row.mips_high = *std::max_element(mips.begin(), mips.end());
  return row;
}

void add_speed_ups(Curve& curve) {
  std::vector<WorkPoint> work;
  std::set<std::string> outputs;
  // One unit for all: cycles only where every point has them.
  curve.has_cycles = !curve.rows.empty();
  for (const Row& row : curve.rows) curve.has_cycles &= row.point.cycles() > 0;
  for (const Row& row : curve.rows) {
    work.push_back({row.point.cores, curve.has_cycles ? row.point.cycles()
                                                      : static_cast<double>(row.point.busiest)});
    outputs.insert(row.point.output_sha256);
  }
  if (curve.one->scaling == Scaling::kStrong) {
    curve.speed_ups = strong_speed_ups(work);
    curve.serial = fit_amdahl(curve.speed_ups);
    curve.outputs_differ = outputs.size() > 1;
  } else if (curve.one->scaling == Scaling::kWeak) {
    curve.speed_ups = weak_speed_ups(work);
    curve.serial = fit_gustafson(curve.speed_ups);
  }
}

const SpeedUp* speed_up_at(const Curve& curve, uint32_t cores) {
  for (const SpeedUp& s : curve.speed_ups)
    if (s.cores == cores) return &s;
  return nullptr;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + "\"";
}

// Columns of chips: values of the varied keys, cycles, joules, and both by part.
struct ChipColumns {
  bool any;
  std::vector<std::string> stack, energy;  // parts of some row
  explicit ChipColumns(const Results& results) : any(!results.stored.study.chips.empty()) {
    const auto add = [](const ChipRun::Parts& parts, std::vector<std::string>& names) {
      for (const auto& [name, value] : parts)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (const Curve& curve : results.curves)
      for (const Row& row : curve.rows) {
        if (!row.point.chip) continue;
        any = true;
        add(row.point.chip->stack, stack);
        add(row.point.chip->energy, energy);
      }
  }
};

std::string number(std::optional<double> v) { return v ? fmt::format("{:.9g}", *v) : ""; }

std::string part_of(const ChipRun::Parts& parts, const std::string& name) {
  for (const auto& [key, value] : parts)
    if (key == name) return number(value);
  return "";
}

std::string chip_fields(const ChipColumns& columns, const Study& study, const Case& one,
                        const std::optional<ChipRun>& chip) {
  if (!columns.any) return "";
  std::string text = "," + csv_field(one.chip);
  for (size_t k = 0; k < study.vary.size(); ++k)
    text += "," + (k < one.chip_values.size() ? csv_field(one.chip_values[k]) : std::string());
  text += fmt::format(",{},{},{}", chip ? number(chip->cycles) : "",
                      chip ? number(chip->seconds) : "", chip ? number(chip->joules) : "");
  for (const std::string& name : columns.stack)
    text += "," + (chip ? part_of(chip->stack, name) : "");
  for (const std::string& name : columns.energy)
    text += "," + (chip ? part_of(chip->energy, name) : "");
  return text;
}

template <class Quantity>
Json quantity(const std::optional<Quantity>& q) {
  return q ? Json(q->value()) : Json(nullptr);
}

}  // namespace

double imbalance(const Point& p) {
  if (p.instructions == 0 || p.busiest == 0) return 0;
  return static_cast<double>(p.busiest) * p.cores / static_cast<double>(p.instructions);
}

std::unique_ptr<Results> put_together(StoredStudy stored, const std::string& energy_targets) {
  auto results = std::make_unique<Results>();
  results->stored = std::move(stored);
  const Study& study = results->stored.study;
  const std::string& names = energy_targets.empty() ? study.energy : energy_targets;
  if (!names.empty()) results->targets = energy::find_targets(names);
  for (const Case& one : study.cases)
    for (const std::string& backend : study.backends) {
      Curve curve;
      curve.one = &one;
      curve.backend = backend;
      curve.label =
          study.backends.size() > 1 ? fmt::format("{} ({})", one.label, backend) : one.label;
      for (const uint32_t cores : one.cores) {
        std::vector<const Point*> repetitions;
        for (const Point& p : results->stored.points) {
          if (p.label != one.label || p.backend_asked != backend || p.cores != cores) continue;
          if (p.ok())
            repetitions.push_back(&p);
          else
            results->failures.push_back(p);
        }
        if (repetitions.empty()) continue;
        Row row = row_of(repetitions);
        row.energy = estimates(results->targets, row.point);
        curve.rows.push_back(std::move(row));
      }
      add_speed_ups(curve);
      if (!curve.rows.empty()) results->curves.push_back(std::move(curve));
    }
  return results;
}

std::vector<OtherMachine> other_machines(const StoredStudy& stored) {
  const auto is_same = [](const Json& a, const Json& b) {
    return std::ranges::all_of(
        std::initializer_list<const char*>{"processor", "memory_bytes", "system"},
        [&](const char* key) { return a.value(key, Json()) == b.value(key, Json()); });
  };
  std::vector<OtherMachine> list;
  for (const Point& p : stored.points) {
    if (!p.machine.is_object() || is_same(p.machine, stored.machine)) continue;
    const auto at = std::ranges::find_if(
        list, [&](const OtherMachine& known) { return is_same(known.machine, p.machine); });
    if (at != list.end())
      ++at->points;
    else
      list.push_back({p.machine, 1});
  }
  return list;
}

std::string results_csv(const Results& results) {
  std::string text =
      "program,scaling,backend,cores,repetitions,status,guest_instructions,micro_ops,seconds,mips,"
      "mips_low,mips_high,busiest_core,active_cores,imbalance,speed_up,efficiency,diverged_share,"
      "waiting_share,simulated_cycles";
  for (int c = 0; c < kInsnClassCount; ++c) text += fmt::format(",{}", kInsnClassNames[c]);
  for (const energy::Target& t : results.targets)
    for (const char* what : {"J", "J_low", "J_high", "s", "dynamic_W", "idle_W"})
      text += fmt::format(",{}", csv_field(fmt::format("{} {}", t.name, what)));
  const Study& study = results.stored.study;
  const ChipColumns chips(results);
  if (chips.any) {
    text += ",chip";
    for (const VariedKey& varied : study.vary) text += "," + csv_field(varied.key);
    text += ",chip_cycles,chip_seconds,chip_J";
    for (const std::string& name : chips.stack) text += fmt::format(",cycles {}", name);
    for (const std::string& name : chips.energy) text += fmt::format(",J {}", name);
  }
  text += ",message\n";
  for (const Curve& curve : results.curves)
    for (const Row& row : curve.rows) {
      const Point& p = row.point;
      const SpeedUp* s = speed_up_at(curve, p.cores);
      text += fmt::format(
          "{},{},{},{},{},ok,{},{},{:.9g},{:.6g},{:.6g},{:.6g},{},{},{:.6g},{},{},{},{},{}",
          csv_field(family_of(*curve.one)), scaling_name(curve.one->scaling), p.backend, p.cores,
          row.repetitions, p.instructions, p.micro_ops, row.seconds, row.mips, row.mips_low,
          row.mips_high, p.busiest, p.active_cores, imbalance(p), s ? number(s->speed_up) : "",
          s ? number(s->efficiency) : "", number(p.lanes.diverged_share),
          number(p.lanes.waiting_share), p.simulated_time ? number(p.simulated_time->cycles) : "");
      for (size_t c = 0; c < kInsnClassCount; ++c) text += fmt::format(",{}", p.classes[c]);
      for (size_t t = 0; t < results.targets.size(); ++t) {
        if (row.energy.empty()) {
          text += ",,,,,,";
          continue;
        }
        const energy::Estimate& e = row.energy[t];
        text += fmt::format(",{:.6g},{:.6g},{:.6g},{},{},{}", e.dynamic.value.value(),
                            e.dynamic.low.value(), e.dynamic.high.value(),
                            e.time ? number(e.time->value()) : "",
                            e.dynamic_power ? number(e.dynamic_power->value()) : "",
                            e.idle_power ? number(e.idle_power->value()) : "");
      }
      text += chip_fields(chips, study, *curve.one, p.chip) + ",\n";
    }
  for (const Point& p : results.failures) {
    const auto one = std::ranges::find(study.cases, p.label, &Case::label);
    text += fmt::format("{},,{},{},1,{}", csv_field(family_of(*one)), p.backend_asked, p.cores,
                        p.status);
    // Columns between status and message stay empty, but what the chip was.
    text += std::string(14 + kInsnClassCount + 6 * results.targets.size(), ',');
    text += chip_fields(chips, study, *one, {}) + ",";
    text += csv_field(p.message) + "\n";
  }
  return text;
}

Json results_json(const Results& results) {
  const StoredStudy& stored = results.stored;
  Json curves = Json::array();
  for (const Curve& curve : results.curves) {
    Json rows = Json::array();
    for (const Row& row : curve.rows) {
      const Point& p = row.point;
      Json classes = Json::object();
      for (size_t c = 0; c < kInsnClassCount; ++c) classes[kInsnClassNames[c]] = p.classes[c];
      Json r = {{"cores", p.cores},
                {"repetitions", row.repetitions},
                {"guest_instructions", p.instructions},
                {"micro_ops", p.micro_ops},
                {"seconds", row.seconds},
                {"mips", row.mips},
                {"mips_low", row.mips_low},
                {"mips_high", row.mips_high},
                {"busiest_core", p.busiest},
                {"active_cores", p.active_cores},
                {"imbalance", imbalance(p)},
                {"host_threads", p.threads},
                {"points_beside_it", p.others},
                {"wall_seconds", p.wall_seconds},
                {"cpu_seconds", p.cpu_seconds},
                {"max_rss_bytes", p.max_rss_bytes},
                {"output_sha256", p.output_sha256},
                {"classes", std::move(classes)}};
      if (const SpeedUp* s = speed_up_at(curve, p.cores)) {
        r["speed_up"] = s->speed_up;
        r["efficiency"] = s->efficiency;
      }
      if (p.lanes.diverged_share) r["diverged_share"] = *p.lanes.diverged_share;
      if (p.lanes.waiting_share) r["waiting_share"] = *p.lanes.waiting_share;
      if (p.simulated_time)
        r["simulated_time"] = {{"target", p.simulated_time->target},
                               {"cycles", p.simulated_time->cycles},
                               {"seconds", p.simulated_time->seconds}};
      if (p.chip) r["chip"] = chip_json(*p.chip);
      Json energy = Json::array();
      for (const energy::Estimate& e : row.energy)
        energy.push_back({{"target", e.target->name},
                          {"dynamic_J", e.dynamic.value.value()},
                          {"low_J", e.dynamic.low.value()},
                          {"high_J", e.dynamic.high.value()},
                          {"time_s", quantity(e.time)},
                          {"time_is_assumed", e.time_is_assumed()},
                          {"dynamic_power_W", quantity(e.dynamic_power)},
                          {"idle_power_W", quantity(e.idle_power)}});
      if (!energy.empty()) r["energy"] = std::move(energy);
      rows.push_back(std::move(r));
    }
    Json c = {{"program", family_of(*curve.one)},
              {"label", curve.one->label},
              {"backend", curve.backend},
              {"scaling", scaling_name(curve.one->scaling)},
              {"work_unit", curve.has_cycles ? "cycles" : "instructions of the busiest core"},
              {"outputs_differ", curve.outputs_differ},
              {"rows", std::move(rows)}};
    if (!curve.one->chip.empty()) {
      Json values = Json::object();
      for (size_t k = 0; k < curve.one->chip_values.size(); ++k)
        values[stored.study.vary[k].key] = curve.one->chip_values[k];
      c["chip"] = curve.one->chip;
      c["chip_values"] = std::move(values);
    }
    if (curve.serial)
      c["serial_share"] = {{"value", curve.serial->share},
                           {"uncertainty_95", curve.serial->uncertainty},
                           {"rms_deviation", curve.serial->deviation}};
    curves.push_back(std::move(c));
  }
  Json failures = Json::array();
  for (const Point& p : results.failures)
    failures.push_back({{"program", p.label},
                        {"backend", p.backend_asked},
                        {"cores", p.cores},
                        {"repeat", p.repeat},
                        {"status", p.status},
                        {"exit_status", p.exit_status},
                        {"message", p.message}});
  Json json = {{"schema", "gpusim-results-1"},
               {"begun", stored.begun},
               {"simulator", stored.simulator},
               {"machine", stored.machine}};
  for (const OtherMachine& other : other_machines(stored)) {
    json["other_machines"].push_back(other.machine);
    json["other_machines"].back()["points"] = other.points;
  }
  json["study"] = study_json(stored.study);
  json["curves"] = std::move(curves);
  json["failures"] = std::move(failures);
  return json;
}

std::string results_text(const Results& results) {
  size_t width = 24;
  for (const Curve& curve : results.curves) width = std::max(width, curve.label.size());
  std::string text = fmt::format("{:<{}} {:>17} {:>12} {:>11} {:>11}  {}\n", "program", width,
                                 "cores", "most MIPS", "speed-up", "efficiency", "serial share");
  for (const Curve& curve : results.curves) {
    const Row& last = curve.rows.back();
    double most = 0;
    for (const Row& row : curve.rows) most = std::max(most, row.mips);
    const SpeedUp* s = speed_up_at(curve, last.point.cores);
    text += fmt::format("{:<{}} {:>17} {:>12.1f} {:>11} {:>11}  {}\n", curve.label, width,
                        fmt::format("{} .. {}", curve.rows.front().point.cores, last.point.cores),
                        most, s ? fmt::format("{:.4g}", s->speed_up) : "-",
                        s ? fmt::format("{:.1f} %", 100 * s->efficiency) : "-",
                        curve.serial ? fmt::format("{:.3g} ± {:.1g} %", 100 * curve.serial->share,
                                                   100 * curve.serial->uncertainty)
                                     : "-");
  }
  if (!ChipColumns(results).any) return text;
  text += fmt::format("\n{:<{}} {:>9} {:>14} {:>7} {:>12}\n", "on a chip", width, "cores", "cycles",
                      "IPC", "energy");
  for (const Curve& curve : results.curves)
    for (const Row& row : curve.rows)
      if (const std::optional<ChipRun>& chip = row.point.chip)
        text += fmt::format("{:<{}} {:>9} {:>14.0f} {:>7.3g} {:>12}\n", curve.label, width,
                            row.point.cores, chip->cycles, chip->instructions_per_cycle,
                            chip->joules > 0 ? energy::pretty(energy::Joules(chip->joules)) : "-");
  return text;
}

}  // namespace gpusim::sweep
