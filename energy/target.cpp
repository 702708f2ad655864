#include "energy/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/base/nearest_name.h"
#include "energy/builtin_targets.h"
#include "energy/quantities.h"

namespace gpusim::energy {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSchema = "gpusim-energy-target-1";

struct Measurement {
  Interval<Joules> energy;
  std::string source;
};

// One variant of one file.
class Reader {
 public:
  Reader(const JsonObject& file, std::string variant) : file_(file), variant_(std::move(variant)) {}

  Target read() {
    Target t;
    t.name = file_.text("name");
    t.title = file_.text("title");
    t.variant = variant_;
    if (!variant_.empty()) {
      t.name += "/" + variant_;
      t.title += ", " + file_.object("variants").text(variant_);
    }
    t.conditions = file_.text("conditions");
    t.notes = file_.texts("notes");
    const JsonObject sources = file_.object("sources");
    for (const auto& item : sources.json().items()) {
      sources.text(item.key());
      sources_.insert(item.key());
    }
    read_uncertainty(t);
    const JsonObject rows = file_.object("measurements");
    for (const auto& item : rows.json().items()) read_measurement(rows, item.key());
    read_classes(t);
    const std::string rows_are = file_.text_or("rows_are", "");
    if (rows_are == "ptx")
      for (const auto& [key, m] : measurements_) t.ptx_rows[key] = m.energy;
    else if (!rows_are.empty())
      file_.fail("\"rows_are\" is \"ptx\", or not there");
    if (file_.has("timing")) t.timing = read_timing(file_.object("timing"));
    if (file_.has("operating_states")) read_states(t);
    if (file_.has("transfer")) t.transfer = read_transfer(file_.object("transfer"));
    return t;
  }

 private:
  std::string source(const JsonObject& o) const {
    const std::string name = o.text("source");
    if (!sources_.contains(name))
      o.fail(fmt::format("source \"{}\" is not among the file's \"sources\"", name));
    return name;
  }

  // A number, or one per variant.
  std::optional<double> of_variant(const JsonObject& o, const std::string& key) const {
    if (!o.get(key).is_object()) return o.number(key);
    const JsonObject per_variant = o.object(key);
    if (!per_variant.has(variant_)) return std::nullopt;
    return per_variant.number(variant_);
  }

  void read_uncertainty(Target& t) {
    const JsonObject o = file_.object("uncertainty");
    const auto relative = of_variant(o, "relative");
    if (!relative) o.fail(fmt::format("\"relative\" has no variant {}", variant_));
    if (*relative >= 1) o.fail("\"relative\" must be below 1 (0.05 is 5 %)");
    relative_ = *relative;
    if (o.has("absolute")) absolute_ = quantity<Joules>(o.object("absolute"));
    source(o);
    t.uncertainty = o.text("meaning");
    o.no_other_keys();
  }

  void read_measurement(const JsonObject& rows, const std::string& key) {
    const JsonObject o = rows.object(key);
    const std::string unit = o.text("unit");
    const std::string from = source(o);
    o.text_or("row", "");
    o.text_or("conditions", "");
    if (o.has("parts")) {
      const JsonObject parts = o.object("parts");
      for (const auto& item : parts.json().items()) parts.number(item.key());
    }
    std::optional<double> value;
    if (o.has("values")) {
      if (variant_.empty()) o.fail("\"values\" per variant, but the file has no \"variants\"");
      const JsonObject values = o.object("values");
      for (const auto& item : values.json().items())
        if (!file_.object("variants").has(item.key()))
          values.fail(fmt::format("the file has no variant \"{}\"", item.key()));
      value = of_variant(o, "values");
    } else {
      value = o.number("value");
    }
    if (!value) {
      o.no_other_keys();
      return;  // not measured in this variant
    }
    const auto joules = [&](double n) { return scaled<Joules>(n, unit, o.where()); };
    Measurement m{.energy = {}, .source = from};
    m.energy.value = joules(*value);
    const Joules half_width = m.energy.value * relative_ + absolute_;
    m.energy.low = std::max(Joules(0), m.energy.value - half_width);
    m.energy.high = m.energy.value + half_width;
    // One number, or one per variant.
    if (o.has("low")) m.energy.low = joules(of_variant(o, "low").value_or(*value));
    if (o.has("high")) m.energy.high = joules(of_variant(o, "high").value_or(*value));
    if (m.energy.low > m.energy.value || m.energy.high < m.energy.value)
      o.fail("\"low\" must not be above the value, nor \"high\" below it");
    o.no_other_keys();
    measurements_[key] = m;
  }

  const Measurement& measurement(const JsonObject& o, const std::string& name) const {
    const auto it = measurements_.find(name);
    if (it != measurements_.end()) return it->second;
    std::vector<std::string> names;
    for (const auto& [known, measurement] : measurements_) names.push_back(known);
    o.fail(fmt::format("there is no measurement \"{}\"{}{}", name,
                       variant_.empty() ? "" : " in variant " + variant_,
                       did_you_mean(name, names)));
  }

  // The mean of the named rows; bounds that hold all of them and those of "range".
  ClassCost read_cost(const JsonObject& o) const {
    ClassCost cost;
    std::vector<std::string> rows = o.texts("measurements");
    if (o.has("substitute")) {
      if (!rows.empty()) o.fail("either \"measurements\" or \"substitute\"");
      rows = {o.text("substitute")};
      cost.is_substitute = true;
      cost.reason = o.text("reason");
    }
    if (rows.empty()) o.fail("needs \"measurements\", or a \"substitute\" and its \"reason\"");
    Joules sum;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Measurement& m = measurement(o, rows[i]);
      sum += m.energy.value;
      cost.energy.low = i == 0 ? m.energy.low : std::min(cost.energy.low, m.energy.low);
      cost.energy.high = std::max(cost.energy.high, m.energy.high);
      cost.measurement += (i == 0 ? "" : ", ") + rows[i];
      cost.source = m.source;
    }
    for (const std::string& row : o.texts("range")) {
      const Measurement& m = measurement(o, row);
      cost.energy.low = std::min(cost.energy.low, m.energy.low);
      cost.energy.high = std::max(cost.energy.high, m.energy.high);
    }
    cost.energy.value = sum / static_cast<double>(rows.size());
    o.no_other_keys();
    return cost;
  }

  void read_classes(Target& t) const {
    const JsonObject classes = file_.object("classes");
    for (int c = 0; c < kInsnClassCount; ++c) {
      if (!classes.has(kInsnClassNames[c]))
        classes.fail(fmt::format(
            "class {} is missing; name a measurement, or a substitute and the reason for it",
            kInsnClassNames[c]));
      t.classes[static_cast<size_t>(c)] = read_cost(classes.object(kInsnClassNames[c]));
    }
    t.has_unplaced_memory = classes.has(kUnplacedMemory);
    t.unplaced_memory = t.has_unplaced_memory ? read_cost(classes.object(kUnplacedMemory))
                                              : t.cost(InsnClass::kOffChipMemory);
    classes.no_other_keys();
  }

  Timing read_timing(const JsonObject& o) const {
    Timing t;
    t.clock = quantity<Hertz>(o.object("clock"));
    if (t.clock.value() <= 0) o.fail("\"clock\" must be above zero");
    t.unit = o.text("unit");
    t.units_are_cores = t.unit == "core";
    if (o.has("units")) {
      t.units = o.number("units");
      if (t.units < 1)
        o.fail("\"units\" must be 1 or more; leave it out for one per simulated core");
    } else if (!t.units_are_cores) {
      o.fail("\"units\" is missing; only \"core\" may do without");
    }
    if (o.has("warp")) t.warp = o.number("warp");
    if (o.has("thread_cycles")) t.thread_cycles = o.number("thread_cycles");
    if (t.units_are_cores && (o.has("warp") || o.has("thread_cycles")))
      o.fail("\"warp\" and \"thread_cycles\" are for units that execute threads, not for cores");
    if (t.warp < 1) o.fail("\"warp\" must be 1 or more");
    t.is_assumed = o.flag_or("assumed", false);
    t.source = source(o);
    t.conditions = o.text_or("conditions", "");
    const JsonObject cycles = o.object("cycles_per_instruction");
    for (int c = 0; c < kInsnClassCount; ++c)
      t.cycles[static_cast<size_t>(c)] = cycles.number(kInsnClassNames[c]);
    t.unplaced_memory_cycles = cycles.has(kUnplacedMemory)
                                   ? cycles.number(kUnplacedMemory)
                                   : t.cycles[static_cast<size_t>(InsnClass::kOffChipMemory)];
    cycles.no_other_keys();
    o.no_other_keys();
    return t;
  }

  void read_states(Target& t) const {
    const Json& list = file_.get("operating_states");
    if (!list.is_array() || list.empty())
      file_.fail("\"operating_states\" must be a list, the highest state first");
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonObject o(list[i], fmt::format("{}[{}]", file_.at("operating_states"), i));
      OperatingState s;
      s.name = o.text("name");
      s.source = source(o);
      s.conditions = o.text_or("conditions", "");
      if (o.has("substitute")) {
        s.substitute = o.text("substitute");
        s.reason = o.text("reason");
        const auto it = std::find_if(t.states.begin(), t.states.end(),
                                     [&](const auto& other) { return other.name == s.substitute; });
        if (it == t.states.end()) o.fail(fmt::format("no state \"{}\" above it", s.substitute));
        s.idle_power = it->idle_power;
      } else {
        s.idle_power = quantity<Watts>(o.object("idle_power"));
      }
      const bool is_last = i + 1 == list.size();
      if (!is_last) s.hold = quantity<Seconds>(o.object("hold"));
      o.no_other_keys();
      t.states.push_back(std::move(s));
    }
  }

  Transfer read_transfer(const JsonObject& o) const {
    Transfer t;
    for (const char* key : {"power", "latency", "bandwidth"}) {
      source(o.object(key));
      t.is_assumed |= o.object(key).flag_or("assumed", false);
    }
    t.power = quantity<Watts>(o.object("power"));
    t.latency = quantity<Seconds>(o.object("latency"));
    t.bandwidth = quantity<BytesPerSecond>(o.object("bandwidth"));
    if (t.bandwidth.value() <= 0) o.fail("\"bandwidth\" must be above zero");
    o.no_other_keys();
    return t;
  }

  const JsonObject& file_;
  std::string variant_;
  std::set<std::string> sources_;
  double relative_ = 0;
  Joules absolute_;
  std::map<std::string, Measurement> measurements_;
};

std::string base_name(const Target& t) { return t.name.substr(0, t.name.find('/')); }

void add_named(const std::string& name, std::vector<Target>& found) {
  if (name.empty()) throw Error("--target: an empty name in the list");
  if (name == "all") {
    const auto& all = builtin_targets();
    for (const Target& t : all)
      if (t.name != "template") found.push_back(t);
    return;
  }
  if (name.ends_with(".json") || name.starts_with('.') || name.starts_with('/')) {
    for (Target& t : parse_target(read_text(name), name)) found.push_back(std::move(t));
    return;
  }
  bool any = false;
  std::string names;
  std::vector<std::string> all{"all"};
  for (const Target& t : builtin_targets()) {
    const std::string base = base_name(t);
    all.insert(all.end(), {base, t.name});
    const bool first = names != base && !(names.ends_with(", " + base));
    if (first) names += (names.empty() ? "" : ", ") + base;
    const bool is_default = first;
    if (t.name == name || (is_default && base == name) || name == base + "/all") {
      found.push_back(t);
      any = true;
    }
  }
  if (!any)
    throw Error(
        fmt::format("unknown energy target {}{}; there are: {}, all, or a file .json "
                    "(gpusim energy targets tells more)",
                    name, did_you_mean(name, all), names));
}

}  // namespace

std::vector<Target> parse_target(const std::string& text, const std::string& origin) {
  Json json = parse_json(text, origin);
  // What `gpusim energy targets NAME --json` prints: a list.
  if (json.is_array() && json.size() == 1) json = Json(json[0]);
  if (json.is_array())
    throw Error(fmt::format("{}: a list of {} targets; a file has one", origin, json.size()));
  const JsonObject file(json, origin);
  if (!file.has("schema") || file.get("schema") != kSchema)
    file.fail(fmt::format("not an energy target: \"schema\" must be \"{}\"", kSchema));
  const std::string name = file.text("name");
  if (name.find_first_of("/, ") != std::string::npos || name == "all")
    file.fail("\"name\" must be a word without slash, comma or space");
  std::vector<std::string> variants;
  if (file.has("variants")) {
    const JsonObject list = file.object("variants");
    const std::string first = file.text("default_variant");
    if (!list.has(first)) list.fail(fmt::format("\"default_variant\" {} is not there", first));
    variants.push_back(first);
    for (const auto& item : list.json().items())
      if (item.key() != first) variants.push_back(item.key());
  } else {
    variants.push_back("");
  }
  std::vector<Target> targets;
  for (const std::string& variant : variants) targets.push_back(Reader(file, variant).read());
  file.no_other_keys();
  return targets;
}

const std::vector<Target>& builtin_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all;
    for (const EmbeddedFile& file : builtin_target_files())
      for (Target& t : parse_target(file.text, file.name)) all.push_back(std::move(t));
    return all;
  }();
  return targets;
}

std::vector<Target> find_targets(const std::string& list) {
  std::vector<Target> found;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) add_named(name, found);
  if (found.empty()) throw Error("--target: no name given");
  return found;
}

}  // namespace gpusim::energy
