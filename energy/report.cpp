#include "energy/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpusim::energy {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kMostDetailed = 4;  // targets with tables of their own
constexpr size_t kMostParts = 10;    // functions and lines on a terminal

std::string pretty_si(double value, const char* unit) {
  constexpr struct {
    double scale;
    const char* prefix;
  } kPrefixes[] = {{1e9, "G"},  {1e6, "M"},  {1e3, "k"},  {1, ""},
                   {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}, {1e-12, "p"}};
  if (value == 0) return fmt::format("0 {}", unit);
  for (const auto& p : kPrefixes)
    if (std::abs(value) >= p.scale * 0.9995)
      return fmt::format("{:.4g} {}{}", value / p.scale, p.prefix, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

std::string range(const Interval<Joules>& e) {
  return fmt::format("{} ... {}", pretty(e.low), pretty(e.high));
}

template <class T>
std::string or_dash(const std::optional<T>& q) {
  return q ? pretty(*q) : "-";
}

std::string percent(Joules part, Joules whole) {
  return whole > Joules(0) ? fmt::format("{:.1f} %", 100 * (part / whole)) : "-";
}

std::string time_text(const Estimate& e) {
  if (!e.time) return "-";
  return pretty(*e.time) + (e.time_is_assumed() ? " *" : "");
}

void add_parts(std::string& text, const char* title, const std::vector<PartEnergy>& parts,
               Joules whole) {
  if (parts.empty()) return;
  text += fmt::format("\n  {:<44} {:>16} {:>12} {:>8}\n", title, "instructions", "energy", "share");
  for (size_t i = 0; i < parts.size() && i < kMostParts; ++i)
    text +=
        fmt::format("  {:<44} {:>16} {:>12} {:>8}\n",
                    parts[i].name.empty() ? "(not known)" : parts[i].name, parts[i].instructions,
                    pretty(parts[i].energy.value), percent(parts[i].energy.value, whole));
  if (parts.size() > kMostParts) {
    uint64_t instructions = 0;
    Joules rest;
    for (size_t i = kMostParts; i < parts.size(); ++i) {
      instructions += parts[i].instructions;
      rest += parts[i].energy.value;
    }
    text += fmt::format("  {:<44} {:>16} {:>12} {:>8}\n",
                        fmt::format("{} more", parts.size() - kMostParts), instructions,
                        pretty(rest), percent(rest, whole));
  }
}

void add_cores(std::string& text, const Estimate& e) {
  if (e.per_core.empty()) return;
  const auto by_energy = [](const PartEnergy& a, const PartEnergy& b) {
    return a.energy.value < b.energy.value;
  };
  const auto [least, most] = std::minmax_element(e.per_core.begin(), e.per_core.end(), by_energy);
  text += fmt::format(
      "\n  cores: {} active, {} idle; mean of the active ones {}, least {} (core {}), most {} "
      "(core {})\n",
      e.active_cores, e.idle_cores,
      pretty(e.active_cores ? e.dynamic.value / e.active_cores : Joules(0)),
      pretty(least->energy.value), least->name, pretty(most->energy.value), most->name);
}

void add_details(std::string& text, const Estimate& e) {
  text += fmt::format("\n{}: {}\n", e.target->name, e.target->title);
  text += fmt::format("  {:<20} {:>16} {:>10} {:>12} {:>8}  {}\n", "class", "count", "each",
                      "energy", "share", "from");
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    const ClassEnergy& row = e.classes[c];
    if (row.count == 0) continue;
    const std::string from =
        row.cost->is_substitute
            ? fmt::format("substitute {}: {}", row.cost->measurement, row.cost->reason)
            : row.cost->measurement;
    text += fmt::format("  {:<20} {:>16} {:>10} {:>12} {:>8}  {}\n", row.priced_as, row.count,
                        pretty(row.energy.value / static_cast<double>(row.count)),
                        pretty(row.energy.value), percent(row.energy.value, e.dynamic.value), from);
  }
  text += fmt::format("  {:<20} {:>16} {:>10} {:>12}  ({})\n", "dynamic energy", e.instructions, "",
                      pretty(e.dynamic.value), range(e.dynamic));
  if (e.transfer_energy)
    text += fmt::format("  {:<20} {:>40}  (in {})\n", "transfers", pretty(*e.transfer_energy),
                        pretty(*e.transfer_time));
  if (e.idle_energy)
    text += fmt::format("  {:<20} {:>40}  ({} all the time)\n", "idle energy",
                        pretty(*e.idle_energy), pretty(*e.idle_power));
  if (e.cpu_energy) text += fmt::format("  {:<20} {:>40}\n", "CPU", pretty(e.cpu_energy->value));
  if (e.idle_energy || e.transfer_energy || e.cpu_energy)
    text += fmt::format("  {:<20} {:>40}\n", "total", pretty(e.total.value));
  add_cores(text, e);
  add_parts(text, "row of the target", e.rows, e.dynamic.value);
  add_parts(text, "function", e.functions, e.dynamic.value);
  add_parts(text, "source line", e.lines, e.dynamic.value);
  text += fmt::format("  range: {}\n", e.target->uncertainty);
  if (e.time_is_assumed())
    text +=
        "  * time and powers rest on assumed cycles (gpusim energy targets NAME); --seconds gives "
        "the time\n";
  if (!e.time) text += "  the target has no timing: --seconds gives the time, and with it powers\n";
  for (const std::string& remark : e.remarks) text += fmt::format("  {}\n", remark);
  for (const std::string& note : e.target->notes) text += fmt::format("  note: {}\n", note);
}

Json interval_json(const Interval<Joules>& e) {
  return {{"low_J", e.low.value()}, {"value_J", e.value.value()}, {"high_J", e.high.value()}};
}

template <class T>
Json or_null(const std::optional<T>& q) {
  return q ? Json(q->value()) : Json(nullptr);
}

Json parts_json(const char* key, const std::vector<PartEnergy>& parts) {
  Json list = Json::array();
  for (const PartEnergy& part : parts)
    list.push_back({{key, part.name},
                    {"guest_instructions", part.instructions},
                    {"energy", interval_json(part.energy)}});
  return list;
}

Json estimate_json(const Estimate& e) {
  Json classes = Json::object();
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    const ClassEnergy& row = e.classes[c];
    Json one = {{"count", row.count},
                {"each", interval_json(row.cost->energy)},
                {"energy", interval_json(row.energy)},
                {"priced_as", row.priced_as},
                {"measurement", row.cost->measurement},
                {"source", row.cost->source},
                {"is_substitute", row.cost->is_substitute}};
    if (row.cost->is_substitute) one["reason"] = row.cost->reason;
    classes[kInsnClassNames[c]] = std::move(one);
  }
  Json object = {{"target", e.target->name},
                 {"title", e.target->title},
                 {"dynamic", interval_json(e.dynamic)},
                 {"time_s", or_null(e.time)},
                 {"time_is_assumed", e.time_is_assumed()},
                 {"dynamic_power_W", or_null(e.dynamic_power)},
                 {"idle_power_W", or_null(e.idle_power)},
                 {"idle_J", or_null(e.idle_energy)},
                 {"transfer_s", or_null(e.transfer_time)},
                 {"transfer_J", or_null(e.transfer_energy)},
                 {"cpu", e.cpu_energy ? interval_json(*e.cpu_energy) : Json(nullptr)},
                 {"total", interval_json(e.total)},
                 {"uncertainty", e.target->uncertainty},
                 {"conditions", e.target->conditions},
                 {"remarks", e.remarks},
                 {"notes", e.target->notes},
                 {"classes", std::move(classes)}};
  if (!e.rows.empty()) object["rows"] = parts_json("row", e.rows);
  if (!e.functions.empty()) object["functions"] = parts_json("function", e.functions);
  if (!e.lines.empty()) object["lines"] = parts_json("line", e.lines);
  if (!e.per_core.empty()) {
    object["active_cores"] = e.active_cores;
    object["idle_cores"] = e.idle_cores;
    object["per_core"] = parts_json("core", e.per_core);
  }
  return object;
}

}  // namespace

std::string class_title(size_t insn_class, bool memory_is_placed) {
  if (insn_class == static_cast<size_t>(InsnClass::kOffChipMemory))
    return memory_is_placed ? "off-chip memory" : "memory";
  if (insn_class == static_cast<size_t>(InsnClass::kOnChipMemory)) return "on-chip memory";
  std::string name = kInsnClassNames[insn_class];
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string pretty(Joules energy) { return pretty_si(energy.value(), "J"); }
std::string pretty(Watts power) { return pretty_si(power.value(), "W"); }
std::string pretty(Seconds time) { return pretty_si(time.value(), "s"); }

std::string report_text(const Activity& activity, const std::vector<Estimate>& estimates) {
  std::string text =
      fmt::format("{}: {} instructions{}\n\n", activity.name, activity.instructions(),
                  activity.cores ? fmt::format(" on {} cores", activity.cores) : "");
  text += fmt::format("{:<22} {:>11} {:>27} {:>12} {:>12} {:>12} {:>10}\n", "target", "dynamic",
                      "range", "per instr.", "time", "dyn. power", "idle");
  bool any_assumed = false;
  for (const Estimate& e : estimates) {
    any_assumed |= e.time_is_assumed();
    text += fmt::format("{:<22} {:>11} {:>27} {:>12} {:>12} {:>12} {:>10}\n", e.target->name,
                        pretty(e.dynamic.value), range(e.dynamic),
                        pretty(e.dynamic.value / static_cast<double>(e.instructions)), time_text(e),
                        or_dash(e.dynamic_power), or_dash(e.idle_power));
  }
  if (estimates.size() <= kMostDetailed) {
    for (const Estimate& e : estimates) add_details(text, e);
    return text;
  }
  if (any_assumed) text += "* from assumed cycles per instruction\n";
  for (const Estimate& e : estimates)
    for (const std::string& remark : e.remarks)
      text += fmt::format("{}: {}\n", e.target->name, remark);
  return text;
}

Json report_json(const Activity& activity, const std::vector<Estimate>& estimates) {
  Json list = Json::array();
  for (const Estimate& e : estimates) list.push_back(estimate_json(e));
  Json object = {{"input", activity.name}, {"guest_instructions", activity.instructions()}};
  if (activity.cores) object["cores"] = activity.cores;
  object["targets"] = std::move(list);
  return object;
}

std::string targets_text() {
  std::string text;
  for (const Target& t : builtin_targets()) text += fmt::format("{:<22} {}\n", t.name, t.title);
  text +=
      "\nA name without its variant stands for the first one listed, NAME/all for every variant,\n"
      "all for every target but the template, and a file .json for a target of one's own.\n";
  return text;
}

std::string target_text(const Target& t) {
  std::string text = fmt::format("{}: {}\n\n  {}\n", t.name, t.title, t.conditions);
  text += fmt::format("\n  {:<20} {:>10}  {:<27} {:>10}  {}\n", "class", "energy", "range",
                      "cycles", "from");
  const auto row = [&](const char* name, const ClassCost& cost, std::optional<double> cycles) {
    text += fmt::format("  {:<20} {:>10}  {:<27} {:>10}  {}\n", name, pretty(cost.energy.value),
                        range(cost.energy), cycles ? fmt::format("{:g}", *cycles) : "-",
                        cost.is_substitute
                            ? fmt::format("substitute {}: {}", cost.measurement, cost.reason)
                            : fmt::format("{} ({})", cost.measurement, cost.source));
  };
  for (size_t c = 0; c < kInsnClassCount; ++c)
    row(kInsnClassNames[c], t.classes[c],
        t.timing ? std::optional(t.timing->cycles[c]) : std::nullopt);
  row(kUnplacedMemory, t.unplaced_memory,
      t.timing ? std::optional(t.timing->unplaced_memory_cycles) : std::nullopt);
  text += fmt::format("\n  range: {}\n", t.uncertainty);
  if (t.timing) {
    const Timing& timing = *t.timing;
    text +=
        fmt::format("  timing{}: {} at {:g} MHz ({}). {}\n", timing.is_assumed ? " (assumed)" : "",
                    timing.units == 0 ? "cores as simulated"
                                      : fmt::format("{:g} x {}", timing.units, timing.unit),
                    timing.clock.value() / 1e6, timing.source, timing.conditions);
    if (timing.thread_cycles > 0)
      text += fmt::format(
          "  simulated cores are its threads, in warps of {:g}; {:g} cycles per instruction of one "
          "thread\n",
          timing.warp, timing.thread_cycles);
  }
  for (const OperatingState& s : t.states)
    text += fmt::format(
        "  state {}: {} idle{}{}\n", s.name, pretty(s.idle_power),
        s.hold > Seconds(0) ? ", lasts " + pretty(s.hold) : "",
        s.substitute.empty() ? "" : fmt::format(" (that of {}: {})", s.substitute, s.reason));
  if (t.transfer)
    text +=
        fmt::format("  transfers{}: {} above idle, {} + size / {:g} GB/s\n",
                    t.transfer->is_assumed ? " (partly assumed)" : "", pretty(t.transfer->power),
                    pretty(t.transfer->latency), t.transfer->bandwidth.value() / 1e9);
  for (const std::string& note : t.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

std::string curve_text(const Target& target, const PowerCurve& curve) {
  std::string text = fmt::format("{}: {}\n\n{:>12} {:>12} {:>11} {:>11}  {:<10} {}\n", target.name,
                                 target.title, "from", "to", "power", "energy", "state", "what");
  for (const Segment& s : curve.segments)
    text += fmt::format("{:>12} {:>12} {:>11} {:>11}  {:<10} {}\n", pretty(s.begin), pretty(s.end),
                        pretty(s.power), pretty(s.energy()), s.state, s.what);
  text += fmt::format("\n{} in {}: {} on average\n", pretty(curve.energy), pretty(curve.duration()),
                      pretty(curve.average()));
  return text;
}

std::string curve_csv(const PowerCurve& curve) {
  std::string text = "time_s,power_W,state,what\n";
  for (const Segment& s : curve.segments) {
    std::string what = s.what;
    std::replace(what.begin(), what.end(), ',', ' ');
    text += fmt::format("{:.9g},{:.9g},{},{}\n", s.begin.value(), s.power.value(), s.state, what);
    text += fmt::format("{:.9g},{:.9g},{},{}\n", s.end.value(), s.power.value(), s.state, what);
  }
  return text;
}

}  // namespace gpusim::energy
