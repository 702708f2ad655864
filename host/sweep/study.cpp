#include "host/sweep/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/base/nearest_name.h"
#include "energy/target.h"
#include "host/sweep/chips.h"
#include "host/sweep/machine.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace gpusim::sweep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr uint32_t kMostCores = 1u << 24;
constexpr size_t kMostPoints = 100000;

// Options of `gpusim run` that a study sets itself, or that would spoil its points.
const std::set<std::string> kOwnOptions = {"--cores",  "--backend",      "--threads", "--stats",
                                           "--energy", "--isa-coverage", "--quiet",   "--per-core"};

uint32_t number(const std::string& where, std::string_view text, uint32_t most) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > most)
    throw Error(
        fmt::format("{}: \"{}\" is not a number from 1 to {}", where, std::string(text), most));
  return value;
}

void sort_once(std::vector<uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

void allow(const JsonObject& o, std::initializer_list<const char*> keys) {
  for (const auto& item : o.json().items())
    if (std::none_of(keys.begin(), keys.end(), [&](const char* k) { return item.key() == k; }))
      o.fail(fmt::format("unknown key \"{}\"{}; there are: {}", item.key(),
                         did_you_mean(item.key(), keys), fmt::join(keys, ", ")));
}

// A text, a number, or a list of them.
std::vector<std::string> words(const JsonObject& o, const char* key) {
  std::vector<std::string> list;
  if (!o.has(key)) return list;
  const auto one = [&](const Json& v) {
    if (v.is_string())
      list.push_back(v.get<std::string>());
    else if (v.is_number())
      list.push_back(v.dump());
    else
      o.fail(fmt::format("\"{}\" must be texts or numbers", key));
  };
  if (o.get(key).is_array())
    for (const Json& v : o.get(key)) one(v);
  else
    one(o.get(key));
  return list;
}

uint32_t count(const JsonObject& o, const char* key, uint32_t otherwise, uint32_t most) {
  if (!o.has(key)) return otherwise;
  if (!o.get(key).is_number_unsigned() || o.get(key).get<uint64_t>() > most)
    o.fail(fmt::format("\"{}\" must be a whole number up to {}", key, most));
  return o.get(key).get<uint32_t>();
}

std::vector<uint32_t> cores_of(const JsonObject& o) {
  if (!o.has("cores")) return {};
  return parse_cores(o.at("cores"), fmt::format("{}", fmt::join(words(o, "cores"), ",")));
}

// `entry`, `call`, `memory` and `options`, as options of `gpusim run`.
std::vector<std::string> run_options(const JsonObject& r) {
  std::vector<std::string> options;
  if (r.has("entry")) options.insert(options.end(), {"--entry", r.text_or("entry", "")});
  for (const std::string& value : words(r, "call")) options.push_back("--arg=" + value);
  if (r.has("memory")) options.insert(options.end(), {"--memory", r.text_or("memory", "")});
  for (const std::string& option : words(r, "options")) options.push_back(option);
  return options;
}

void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::string from_here(const fs::path& folder, const std::string& path) {
  if (fs::path(path).is_absolute()) return path;
  const fs::path joined = (folder / path).lexically_normal();
  return joined.is_absolute() ? joined.lexically_proximate(fs::current_path()).string()
                              : joined.string();
}

void read_program(const Json& json, const std::string& where, const fs::path& folder,
                  const std::vector<std::string>& all_options, Study& study) {
  const JsonObject r(json, where);
  allow(r, {"program", "name", "scaling", "entry", "call", "memory", "options", "args", "cores",
            "sizes"});
  Case base;
  base.program = from_here(folder, r.text("program"));
  base.label = r.text_or("name", fs::path(base.program).stem().string());
  base.scaling = parse_scaling(r.at("scaling"), r.text_or("scaling", "strong"));
  base.options = all_options;
  append(base.options, run_options(r));
  base.args = words(r, "args");
  base.cores = cores_of(r);
  if (!r.has("sizes")) {
    study.cases.push_back(base);
    return;
  }
  const Json& sizes = r.get("sizes");
  if (!sizes.is_array() || sizes.empty()) r.fail("\"sizes\" must be a list");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const JsonObject size(sizes[i], fmt::format("{}[{}]", r.at("sizes"), i));
    allow(size, {"name", "call", "options", "args", "cores", "scaling", "entry", "memory"});
    Case one = base;
    one.label += "/" + size.text("name");
    append(one.options, run_options(size));
    append(one.args, words(size, "args"));
    if (size.has("cores")) one.cores = cores_of(size);
    if (size.has("scaling")) one.scaling = parse_scaling(size.at("scaling"), size.text("scaling"));
    study.cases.push_back(one);
  }
}

Study study_of(const Json& json, const std::string& where, const fs::path& folder) {
  const JsonObject r(json, where);
  allow(r, {"title", "cores", "backend", "repeat", "energy", "threads", "jobs", "timeout_seconds",
            "options", "simulated_time", "timing", "chip", "vary", "programs"});
  Study study;
  study.title = r.text_or("title", "");
  study.cores = cores_of(r);
  if (r.has("backend")) study.backends = words(r, "backend");
  study.repeat = count(r, "repeat", 1, 1000);
  study.energy = fmt::format("{}", fmt::join(words(r, "energy"), ","));
  study.threads = count(r, "threads", 0, 4096);
  study.jobs = count(r, "jobs", 0, 4096);
  study.timeout_seconds = r.number_or("timeout_seconds", study.timeout_seconds);
  std::vector<std::string> options = words(r, "options");
  append(options, time_options(r.flag_or("simulated_time", false), r.text_or("timing", "")));
  // What has no slash and is no file there is a name.
  for (const std::string& chip : words(r, "chip"))
    study.chips.push_back(
        fs::exists(folder / chip.substr(0, chip.find(','))) ? from_here(folder, chip) : chip);
  if (r.has("vary")) {
    const JsonObject vary = r.object("vary");
    for (const auto& item : vary.json().items())
      study.vary.push_back(
          varied_key(vary.at(item.key()), item.key(),
                     fmt::format("{}", fmt::join(words(vary, item.key().c_str()), ","))));
  }
  const Json& programs = r.get("programs");
  if (!programs.is_array() || programs.empty()) r.fail("\"programs\" must be a list of programs");
  for (size_t i = 0; i < programs.size(); ++i)
    read_program(programs[i], fmt::format("{}[{}]", r.at("programs"), i), folder, options, study);
  return study;
}

Json parse_toml(const std::string& text, const std::string& path) {
  try {
    std::ostringstream json;
    json << toml::json_formatter(toml::parse(text, path));
    return Json::parse(json.str());
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}: line {}, column {}: {}", path, error.source().begin.line,
                            error.source().begin.column, std::string(error.description())));
  }
}

}  // namespace

std::vector<std::string> time_options(bool simulated_time, const std::string& timing) {
  if (!simulated_time && timing.empty()) return {};
  std::vector<std::string> options = {"--simulated-time"};
  if (!timing.empty()) options.insert(options.end(), {"--timing", timing});
  return options;
}

const std::string& family_of(const Case& one) {
  return one.family.empty() ? one.label : one.family;
}

const char* scaling_name(Scaling scaling) {
  return scaling == Scaling::kStrong ? "strong" : scaling == Scaling::kWeak ? "weak" : "none";
}

Scaling parse_scaling(const std::string& where, const std::string& name) {
  for (const Scaling s : {Scaling::kStrong, Scaling::kWeak, Scaling::kNone})
    if (name == scaling_name(s)) return s;
  throw Error(fmt::format("{}: \"{}\" is not strong, weak or none", where, name));
}

std::vector<uint32_t> parse_cores(const std::string& where, const std::string& text) {
  std::vector<uint32_t> list;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string item = text.substr(at, comma - at);
    std::erase(item, ' ');
    at = comma + 1;
    const size_t dots = item.find("..");
    if (dots == std::string::npos) {
      list.push_back(number(where, item, kMostCores));
      continue;
    }
    const size_t plus = item.find('+', dots);
    const uint32_t first = number(where, item.substr(0, dots), kMostCores);
    const uint32_t last =
        number(where, item.substr(dots + 2, plus == std::string::npos ? plus : plus - dots - 2),
               kMostCores);
    if (last < first) throw Error(fmt::format("{}: {} counts downwards", where, item));
    const uint32_t step =
        plus == std::string::npos ? 0 : number(where, item.substr(plus + 1), kMostCores);
    for (uint32_t n = first; n < last; n = step ? n + step : 2 * n) {
      list.push_back(n);
      if (list.size() > kMostPoints) throw Error(where + ": that many points are too many");
    }
    list.push_back(last);
  }
  sort_once(list);
  return list;
}

std::string filled_in(const std::string& argument, uint32_t cores) {
  std::string out;
  for (size_t at = 0; at < argument.size();) {
    const size_t open = argument.find("{cores", at);
    if (open == std::string::npos) return out + argument.substr(at);
    out += argument.substr(at, open - at);
    const size_t close = argument.find('}', open);
    const std::string inside =
        close == std::string::npos ? "" : argument.substr(open + 6, close - open - 6);
    uint64_t value = cores;
    if (close == std::string::npos || (!inside.empty() && inside[0] != '*' && inside[0] != '/'))
      throw Error(
          fmt::format("argument {}: expected {{cores}}, {{cores*K}} or {{cores/K}}", argument));
    if (!inside.empty()) {
      const uint32_t k = number("argument " + argument, inside.substr(1), ~uint32_t{0});
      value = inside[0] == '*' ? value * k : std::max<uint64_t>(1, value / k);
    }
    out += std::to_string(value);
    at = close + 1;
  }
  return out;
}

bool is_study_file(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".toml");
}

Study load_study(const std::string& path) {
  const std::string text = read_text(path);
  const Json json = path.ends_with(".toml") ? parse_toml(text, path) : parse_json(text, path);
  return study_of(json, path, fs::path(path).parent_path());
}

void prepare(Study& study) {
  put_on_chips(study);
  std::set<std::string> labels;
  size_t points = 0;
  for (Case& c : study.cases) {
    if (c.label.empty()) throw Error(fmt::format("program {}: its name is empty", c.program));
    if (!labels.insert(c.label).second)
      throw Error(fmt::format(
          "two programs are called {}; give them different \"name\"s in a study file", c.label));
    if (c.cores.empty()) c.cores = study.cores;
    if (c.cores.empty())
      throw Error(fmt::format("{}: no numbers of cores; --cores 1,2,4..1024", c.label));
    for (const std::string& option : c.options) {
      const std::string name = option.substr(0, option.find('='));
      if (kOwnOptions.contains(name))
        throw Error(fmt::format("{}: the study sets {} of `gpusim run` itself", c.label, name));
      if (name == "--part")
        throw Error(
            fmt::format("{}: a point of a study is a whole machine, which one process runs: no "
                        "--part. Share out the cores of one run by `mpirun gpusim run --part "
                        "auto`, and put its parts together by `gpusim merge`",
                        c.label));
    }
    for (const std::string& argument : c.args) (void)filled_in(argument, 1);
    for (const std::string& option : c.options) (void)filled_in(option, 1);
    points += c.cores.size() * study.backends.size() * study.repeat;
    c.program_sha256 = sha256_file(c.program);
  }
  if (study.backends.empty()) throw Error("no backend to run on");
  if (points > kMostPoints)
    throw Error(fmt::format("the study has {} points; at most {}", points, kMostPoints));
  if (!study.energy.empty()) energy::find_targets(study.energy);
  if (study.title.empty()) {
    const std::string& first = family_of(study.cases[0]);
    const bool is_one =
        std::ranges::all_of(study.cases, [&](const Case& c) { return family_of(c) == first; });
    study.title = is_one ? first : "Scaling study";
  }
}

Json study_json(const Study& study) {
  Json cases = Json::array();
  for (const Case& c : study.cases)
    cases.push_back({{"label", c.label},
                     {"program", c.program},
                     {"sha256", c.program_sha256},
                     {"options", c.options},
                     {"args", c.args},
                     {"scaling", scaling_name(c.scaling)},
                     {"cores", c.cores},
                     {"family", c.family},
                     {"chip", c.chip},
                     {"chip_values", c.chip_values}});
  Json vary = Json::object();
  for (const VariedKey& varied : study.vary) vary[varied.key] = varied.values;
  return {{"title", study.title},       {"cases", std::move(cases)},
          {"backends", study.backends}, {"repeat", study.repeat},
          {"energy", study.energy},     {"threads", study.threads},
          {"jobs", study.jobs},         {"timeout_seconds", study.timeout_seconds},
          {"chips", study.chips},       {"vary", std::move(vary)}};
}

Study study_of_json(const Json& json, const std::string& where) {
  const JsonObject object(json, where);
  Study study;
  object.read("title", study.title);
  object.read("backends", study.backends);
  object.read("repeat", study.repeat);
  object.read("energy", study.energy);
  object.read("threads", study.threads);
  object.read("jobs", study.jobs);
  object.read("timeout_seconds", study.timeout_seconds);
  if (object.has("chips")) {  // studies of gpusim before 2026-11-26 lack them
    object.read("chips", study.chips);
    const JsonObject vary = object.object("vary");
    for (const auto& item : vary.json().items()) {
      VariedKey& varied = study.vary.emplace_back();
      varied.key = item.key();
      vary.read(item.key(), varied.values);
    }
  }
  for (const JsonObject& one : object.objects("cases")) {
    Case c;
    one.read("label", c.label);
    one.read("program", c.program);
    one.read("sha256", c.program_sha256);
    one.read("options", c.options);
    one.read("args", c.args);
    one.read("cores", c.cores);
    c.scaling = parse_scaling(one.at("scaling"), one.text("scaling"));
    if (one.has("chip")) {
      one.read("family", c.family);
      one.read("chip", c.chip);
      one.read("chip_values", c.chip_values);
      if (!c.chip.empty() && c.chip_values.size() != study.vary.size())
        one.fail("\"chip_values\" does not have a value per key of \"vary\"");
    }
    study.cases.push_back(std::move(c));
  }
  return study;
}

}  // namespace gpusim::sweep
