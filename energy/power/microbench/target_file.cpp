#include "energy/power/microbench/target_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

using Json = nlohmann::ordered_json;

// Which instructions stand for a class; the others of the class only widen its bounds.
struct ClassRule {
  InsnClass insn_class;
  std::vector<std::string_view> value, range;
};
const std::vector<ClassRule>& class_rules() {
  static const std::vector<ClassRule> rules = {
      {InsnClass::kIntegerArithmetic, {"add.s32", "sub.s32"}, {}},
      {InsnClass::kIntegerDivision, {"div.s32", "div.u32"}, {}},
      {InsnClass::kIntegerLogical, {"and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32"}, {}},
      {InsnClass::kIntegerComparison, {"setp.s32"}, {}},
      {InsnClass::kFloatArithmetic, {"add.f32", "mul.f32", "fma.f32"}, {}},
      {InsnClass::kFloatDivision, {"div.f32"}, {}},
      {InsnClass::kFloatComparison, {"setp.f32", "setp.f64"}, {}},
      {InsnClass::kDoubleArithmetic, {"add.f64", "mul.f64", "fma.f64"}, {}},
      {InsnClass::kDoubleDivision, {"div.f64"}, {}},
      {InsnClass::kSpecialFunction, {"sqrt.rn.f32", "rsqrt.approx.f32", "rcp.rn.f32"}, {}},
      {InsnClass::kOnChipMemory, {"ld.shared", "st.shared"}, {}},
      {InsnClass::kOffChipMemory, {"ld.global.dram", "st.global.dram"}, {}},
      {InsnClass::kControlFlow, {"bra"}, {}},
      {InsnClass::kParallelism, {"red.shared", "red.global"}, {}},
      {InsnClass::kOther, {"cvta.shared"}, {}},
  };
  return rules;
}

const InstructionResult* find(const BenchResults& results, std::string_view id) {
  for (const InstructionResult& r : results.instructions)
    if (r.instruction->id == id) return &r;
  return nullptr;
}

std::string variant_of(unsigned level) { return fmt::format("o{}", level); }

// Seven digits are more than any sensor gives.
double rounded(double value) { return std::stod(fmt::format("{:.7g}", value)); }
double nj(Joules j) { return rounded(j.value() * 1e9); }

// One number, or an object with one per variant.
template <class F>
Json per_variant(const InstructionResult& r, const std::vector<unsigned>& levels, F value) {
  if (levels.size() == 1) return value(r.by_optimization.at(levels[0]));
  Json all = Json::object();
  for (unsigned level : levels)
    if (r.by_optimization.contains(level))
      all[variant_of(level)] = value(r.by_optimization.at(level));
  return all;
}

Json measurement(const InstructionResult& r, const std::vector<unsigned>& levels) {
  Json m;
  m[levels.size() == 1 ? "value" : "values"] =
      per_variant(r, levels, [](const EnergyFigure& f) { return nj(f.energy); });
  m["low"] = per_variant(r, levels, [](const EnergyFigure& f) { return nj(f.low); });
  m["high"] = per_variant(r, levels, [](const EnergyFigure& f) { return nj(f.high); });
  m["unit"] = "nJ";
  m["source"] = "run";
  m["row"] = std::string(row(r.instruction->row).title);
  Json parts;
  for (unsigned level : levels) {
    if (!r.by_optimization.contains(level)) continue;
    const EnergyFigure& f = r.by_optimization.at(level);
    const std::string tail = levels.size() == 1 ? "" : "_" + variant_of(level);
    parts["with_idle_nJ" + tail] = std::max(0.0, nj(f.with_idle));
    parts["spread_nJ" + tail] = nj(f.spread);
    parts["power_W" + tail] = rounded(f.power.value());
    parts["overhead_power_W" + tail] = rounded(f.overhead_power.value());
    parts["launch_s" + tail] = rounded(f.per_launch.value());
    parts["overhead_launch_s" + tail] = rounded(f.overhead_per_launch.value());
    parts["instructions" + tail] = f.instructions_per_launch;
    parts["cycles" + tail] = rounded(f.cycles);
  }
  m["parts"] = parts;
  std::string doubts;
  for (const auto& [level, f] : r.by_optimization)
    for (const std::string& d : f.doubts)
      doubts += fmt::format("{}-O{}: {}", doubts.empty() ? "" : "; ", level, d);
  if (!doubts.empty()) m["conditions"] = doubts;
  return m;
}

std::vector<std::string> measured_of(const BenchResults& results,
                                     const std::vector<std::string_view>& ids) {
  std::vector<std::string> names;
  for (std::string_view id : ids)
    if (find(results, id) != nullptr) names.emplace_back(id);
  return names;
}

struct ClassCosts {
  Json json;
  std::vector<std::string> rows;  // that the value is the mean of
};

ClassCosts class_costs(const BenchResults& results, const ClassRule& rule) {
  ClassCosts out;
  out.rows = measured_of(results, rule.value);
  std::vector<std::string> others;
  for (const InstructionResult& r : results.instructions) {
    const std::string id(r.instruction->id);
    if (r.instruction->insn_class == rule.insn_class &&
        std::find(out.rows.begin(), out.rows.end(), id) == out.rows.end())
      others.push_back(id);
  }
  if (out.rows.empty() && !others.empty()) std::swap(out.rows, others);
  if (out.rows.empty()) {
    const std::string stand_in = find(results, "add.s32") != nullptr
                                     ? "add.s32"
                                     : std::string(results.instructions.front().instruction->id);
    out.rows = {stand_in};
    out.json = {{"substitute", stand_in}, {"reason", "this run did not measure this class"}};
    return out;
  }
  out.json["measurements"] = out.rows;
  if (!others.empty()) out.json["range"] = others;
  return out;
}

double mean_cycles(const BenchResults& results, const std::vector<std::string>& rows,
                   unsigned level) {
  double sum = 0;
  for (const std::string& id : rows) {
    const auto& by = find(results, id)->by_optimization;
    sum += (by.contains(level) ? by.at(level) : by.begin()->second).cycles;
  }
  return rounded(sum / static_cast<double>(rows.size()));
}

std::string conditions(const BenchResults& r) {
  const BenchOptions& o = r.options;
  std::string text = fmt::format(
      "Per instruction of one thread, above the power of a GPU that waits with its clocks up. {}; "
      "{:g} s for each kernel, {} times; {:.0f} MHz",
      o.is_single_thread
          ? "One thread on the whole GPU"
          : fmt::format("All {} multiprocessors busy, 32 lanes", r.gpu.multiprocessors),
      o.seconds.value(), o.repeats, r.clock.value() / 1e6);
  if (r.temperature_high_c > 0)
    text += fmt::format(", {:.0f} to {:.0f} degrees Celsius", r.temperature_low_c,
                        r.temperature_high_c);
  return text + fmt::format("; driver {}.{}.", r.gpu.driver_version / 1000,
                            r.gpu.driver_version % 1000 / 10);
}

}  // namespace

std::string target_name(const GpuInfo& gpu) {
  std::string name;
  for (char c : gpu.name) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_word)
      name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "gpu" : name;
}

std::string target_json(const BenchResults& results, const std::string& name,
                        const std::string& date) {
  if (results.instructions.empty())
    throw Error("nothing was measured: there is no target to write");
  std::vector<unsigned> levels = results.options.optimizations;
  Json t;
  t["schema"] = "gpusim-energy-target-1";
  t["name"] = name;
  t["title"] = fmt::format("{} (compute capability {}.{}), PTX instructions", results.gpu.name,
                           results.gpu.capability_major, results.gpu.capability_minor);
  t["sources"] = {{"run", fmt::format("gpusim power microbench, {}, power from {}: Equation 1 of "
                                      "Arafa et al. (kernel less the same kernel without the "
                                      "instruction, by the number of instructions)",
                                      date, results.source)}};
  t["conditions"] = conditions(results);
  Json notes = results.notes;
  if (results.options.is_single_thread)
    notes.push_back(
        "One thread on the whole GPU: what a busy GPU spends per instruction of a thread is far "
        "less.");
  for (const InstructionResult& r : results.instructions)
    for (const auto& [level, f] : r.by_optimization)
      if (!f.is_resolved && results.options.repeats > 1)
        notes.push_back(
            fmt::format("{} -O{} was not told apart from nothing.", r.instruction->id, level));
  if (results.options.repeats < 2)
    notes.push_back("One repetition only: bounds hold the sensor's error and nothing else.");
  t["notes"] = notes;
  if (levels.size() > 1) {
    for (unsigned level : levels)
      t["variants"][variant_of(level)] = fmt::format("the driver's assembler at -O{}", level);
    t["default_variant"] = variant_of(levels[0]);
  }
  t["uncertainty"] = {{"relative", results.options.sensor_error},
                      {"source", "run"},
                      {"meaning",
                       "95 % by Student's t over repetitions, half a step of the sensor, and the "
                       "sensor's own relative error, added up"}};
  for (const InstructionResult& r : results.instructions)
    t["measurements"][std::string(r.instruction->id)] = measurement(r, levels);
  Json cycles;
  for (const ClassRule& rule : class_rules()) {
    const std::string key = kInsnClassNames[static_cast<size_t>(rule.insn_class)];
    const ClassCosts costs = class_costs(results, rule);
    t["classes"][key] = costs.json;
    cycles[key] = mean_cycles(results, costs.rows, levels[0]);
  }
  // Where it is not known what served an access, L1 and DRAM bound it.
  if (find(results, "ld.global.l1") != nullptr) {
    t["classes"]["unplaced_memory"] = {{"measurements", {"ld.global.l1"}}};
    if (find(results, "ld.global.dram") != nullptr)
      t["classes"]["unplaced_memory"]["range"] = {"ld.global.dram"};
    cycles["unplaced_memory"] = mean_cycles(results, {"ld.global.l1"}, levels[0]);
  }
  t["timing"] = {
      {"source", "run"},
      {"clock", {{"value", rounded(results.clock.value() / 1e6)}, {"unit", "MHz"}}},
      {"units", results.options.is_single_thread ? 1 : results.gpu.multiprocessors},
      {"unit", "multiprocessor"},
      {"conditions",
       "Time that the instruction adds to its kernel, by the number of threads; work that "
       "hides behind other pipelines costs no time here."},
      {"cycles_per_instruction", cycles}};
  t["operating_states"] = Json::array(
      {{{"name", "active idle"},
        {"idle_power", {{"value", rounded(results.idle.value())}, {"unit", "W"}}},
        {"source", "run"},
        {"conditions", fmt::format("right behind a kernel; {:.4g} to {:.4g} W; {:.4g} W before "
                                   "anything ran",
                                   results.idle_low.value(), results.idle_high.value(),
                                   results.idle_before.value())}}});
  return t.dump(2) + "\n";
}

std::string bench_table(const BenchResults& results) {
  std::string text = fmt::format("{}, power from {}, idle {:.2f} W\n\n", results.gpu.name,
                                 results.source, results.idle.value());
  text += fmt::format("{:<18} {:>3} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}  {}\n", "instruction",
                      "-O", "nJ", "low", "high", "with idle", "W", "W without", "doubts");
  for (const InstructionResult& r : results.instructions)
    for (const auto& [level, f] : r.by_optimization) {
      std::string doubts;
      for (const std::string& d : f.doubts) doubts += (doubts.empty() ? "" : "; ") + d;
      text += fmt::format(
          "{:<18} {:>3} {:>12.5g} {:>12.5g} {:>12.5g} {:>12.5g} {:>9.2f} {:>9.2f}  {}\n",
          r.instruction->id, level, f.energy.value() * 1e9, f.low.value() * 1e9,
          f.high.value() * 1e9, f.with_idle.value() * 1e9, f.power.value(),
          f.overhead_power.value(), doubts);
    }
  return text;
}

}  // namespace gpusim::power
