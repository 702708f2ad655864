#include "host/sweep/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "device_sim/base/error.h"
#include "device_sim/base/json_object.h"
#include "energy/model.h"
#include "host/sweep/machine.h"

namespace gpusim::sweep {
namespace {

constexpr const char* kSchema = "gpusim-point-1";

uint64_t sum(const ClassCounts& classes) { return energy::instructions_of(classes); }

ClassCounts counts_of(const JsonObject& object) {
  ClassCounts counts{};
  for (size_t c = 0; c < kInsnClassCount; ++c)
    if (object.has(kInsnClassNames[c])) object.read(kInsnClassNames[c], counts[c]);
  return counts;
}

Json counts_json(const ClassCounts& counts) {
  Json json = Json::object();
  for (size_t c = 0; c < kInsnClassCount; ++c)
    if (counts[c] != 0) json[kInsnClassNames[c]] = counts[c];
  return json;
}

void add(ClassCounts& to, const ClassCounts& more) {
  for (size_t c = 0; c < to.size(); ++c) to[c] += more[c];
}

// The most executed ones; all others together are one more, so that the sum stays the run's.
std::vector<Part> parts_of(const Json& list, const char* key) {
  std::vector<Part> parts;
  Part rest{"(others)", {}};
  for (const Json& j : list) {
    Part part{j.at(key).get<std::string>(), counts_of({j.at("classes"), key})};
    if (parts.size() < kMostParts)
      parts.push_back(std::move(part));
    else
      add(rest.classes, part.classes);
  }
  if (sum(rest.classes) > 0) parts.push_back(rest);
  return parts;
}

// Statistics of many cores: each is handed on while the file is read, and not kept.
Json parse_statistics(std::istream& file, std::vector<ClassCounts>& per_core) {
  std::string key;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) key = value.get<std::string>();
    if (depth == 2 && event == Json::parse_event_t::object_end && key == "per_core") {
      per_core.push_back(counts_of({value.at("classes"), "per_core"}));
      return false;
    }
    // Lists of cores and places, too; their sums stand beside them.
    return !(depth == 3 && event == Json::parse_event_t::object_end &&
             (key == "simulated_time" || key == "chip"));
  };
  return Json::parse(file, callback);
}

std::vector<Bin> bins_of(const std::vector<ClassCounts>& per_core) {
  const size_t cores = per_core.size(), count = std::min(cores, kMostBins);
  std::vector<Bin> bins(count);
  for (size_t b = 0; b < count; ++b) {
    Bin& bin = bins[b];
    const size_t first = b * cores / count, end = (b + 1) * cores / count;
    bin.cores = static_cast<uint32_t>(end - first);
    bin.least = ~uint64_t{0};
    for (size_t core = first; core < end; ++core) {
      const uint64_t n = sum(per_core[core]);
      add(bin.classes, per_core[core]);
      bin.least = std::min(bin.least, n);
      bin.most = std::max(bin.most, n);
    }
    bin.mean = static_cast<double>(sum(bin.classes)) / bin.cores;
  }
  return bins;
}

std::optional<double> share(const Json& stats, const char* key) {
  if (!stats.contains(key) || !stats.at(key).is_object()) return std::nullopt;
  const Json& object = stats.at(key);
  if (!object.contains("lost_share") || !object.at("lost_share").is_number()) return std::nullopt;
  return object.at("lost_share").get<double>();
}

Json optional_json(const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); }
std::optional<double> optional_of(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

Json parts_json(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& p : parts)
    list.push_back({{"name", p.name}, {"classes", counts_json(p.classes)}});
  return list;
}

std::vector<Part> stored_parts(const std::vector<JsonObject>& list) {
  std::vector<Part> parts;
  for (const JsonObject& one : list) {
    Part& part = parts.emplace_back();
    one.read("name", part.name);
    part.classes = counts_of(one.object("classes"));
  }
  return parts;
}

ChipRun chip_of(const Json& chip) {
  ChipRun run;
  run.name = chip.at("name");
  run.cycles = chip.at("cycles");
  run.seconds = chip.at("seconds");
  run.instructions_per_cycle = chip.at("instructions_per_cycle");
  for (const auto& part : chip.at("stack").items())
    run.stack.emplace_back(part.key(), part.value());
  run.joules = chip.at("energy").at("joules");
  for (const Json& part : chip.at("energy").at("parts"))
    run.energy.emplace_back(part.at("part"), part.at("joules"));
  return run;
}

Json numbers_json(const ChipRun::Parts& parts) {
  Json json = Json::object();
  for (const auto& [name, value] : parts) json[name] = value;
  return json;
}

ChipRun::Parts stored_numbers(const JsonObject& object) {
  ChipRun::Parts parts;
  for (const auto& item : object.json().items())
    parts.emplace_back(item.key(), object.number(item.key()));
  return parts;
}

}  // namespace

double Point::work() const { return cycles() > 0 ? cycles() : static_cast<double>(busiest); }

Json identity_json(const PointId& id, const Json& simulator) {
  PointId asked = id;
  asked.threads = id.threads_asked;
  return {{"simulator", simulator},
          {"program_sha256", id.one->program_sha256},
          {"command", point_command(asked, "")},
          {"label", id.one->label},
          {"repeat", id.repeat}};
}

std::string point_name(const PointId& id, const Json& identity) {
  std::string label;
  for (const char c : id.one->label.substr(0, 60))
    label += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  const std::string sum = sha256_of(identity.dump(-1, ' ', false, Json::error_handler_t::replace));
  return fmt::format("{}-{}-{}-{}-{}", label, id.backend, id.cores, id.repeat, sum.substr(0, 8));
}

std::vector<std::string> point_command(const PointId& id, const std::string& stats) {
  std::vector<std::string> words = {
      "run", id.one->program, "--cores", std::to_string(id.cores), "--backend", id.backend};
  if (id.threads != 0) words.insert(words.end(), {"--threads", std::to_string(id.threads)});
  for (const std::string& option : id.one->options) words.push_back(filled_in(option, id.cores));
  words.insert(words.end(), {"--quiet", "--per-core", "--stats", stats});
  if (!id.one->args.empty()) words.push_back("--");
  for (const std::string& arg : id.one->args) words.push_back(filled_in(arg, id.cores));
  return words;
}

void read_statistics(const std::string& path, Point& point) try {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: no statistics were written", path));
  std::vector<ClassCounts> per_core;
  const Json stats = parse_statistics(file, per_core);
  point.isa = stats.at("isa");
  point.backend = stats.at("backend");
  point.device = stats.at("device");
  point.instructions = stats.at("guest_instructions");
  point.micro_ops = stats.at("micro_ops");
  point.classes = counts_of({stats.at("classes"), path + ".classes"});
  point.seconds = stats.at("seconds");
  point.mips = stats.at("mips");
  point.memory_is_placed = stats.contains("caches") || stats.contains("chip");
  point.functions = parts_of(stats.at("functions"), "function");
  point.lines = parts_of(stats.at("lines"), "line");
  point.lanes = {share(stats, "divergence"), share(stats, "waiting")};
  if (stats.contains("simulated_time") && stats.at("simulated_time").is_object()) {
    const Json& t = stats.at("simulated_time");
    point.simulated_time =
        SimulatedTime{t.value("timing", ""), t.at("cycles"), t.value("seconds", 0.0)};
  }
  if (stats.contains("chip")) point.chip = chip_of(stats.at("chip"));
  point.bins = bins_of(per_core);
  point.least = per_core.empty() ? 0 : ~uint64_t{0};
  for (const ClassCounts& core : per_core) {
    const uint64_t n = sum(core);
    point.busiest = std::max(point.busiest, n);
    point.least = std::min(point.least, n);
    point.active_cores += n > 0;
    point.longest_cores.add(core);
  }
} catch (const Json::exception&) {
  throw Error(path + ": not the statistics of a run, or damaged ones");
}

Json chip_json(const ChipRun& chip) {
  return {{"name", chip.name},
          {"cycles", chip.cycles},
          {"seconds", chip.seconds},
          {"instructions_per_cycle", chip.instructions_per_cycle},
          {"stack", numbers_json(chip.stack)},
          {"energy", {{"joules", chip.joules}, {"parts", numbers_json(chip.energy)}}}};
}

Json point_json(const Point& p, const Json& identity) {
  Json json = {{"schema", kSchema},
               {"identity", identity},
               {"label", p.label},
               {"backend_asked", p.backend_asked},
               {"cores", p.cores},
               {"repeat", p.repeat},
               {"threads", p.threads},
               {"status", p.status},
               {"exit_status", p.exit_status},
               {"message", p.message},
               {"command", p.command},
               {"started", p.started},
               {"wall_seconds", p.wall_seconds},
               {"cpu_seconds", p.cpu_seconds},
               {"max_rss_bytes", p.max_rss_bytes},
               {"load", p.load},
               {"others", p.others},
               {"output", {{"bytes", p.output_bytes}, {"sha256", p.output_sha256}}},
               {"machine", p.machine},
               {"session", p.session},
               {"claim", p.claim}};
  if (!p.ok()) return json;
  Json bins = Json::array();
  for (const Bin& b : p.bins)
    bins.push_back({{"cores", b.cores},
                    {"least", b.least},
                    {"most", b.most},
                    {"classes", counts_json(b.classes)}});
  Json longest_cores = Json::array();
  for (const ClassCounts& core : p.longest_cores.list()) longest_cores.push_back(counts_json(core));
  Json stats = {{"isa", p.isa},
                {"backend", p.backend},
                {"device", p.device},
                {"guest_instructions", p.instructions},
                {"micro_ops", p.micro_ops},
                {"classes", counts_json(p.classes)},
                {"seconds", p.seconds},
                {"mips", p.mips},
                {"memory_is_placed", p.memory_is_placed},
                {"functions", parts_json(p.functions)},
                {"lines", parts_json(p.lines)},
                {"busiest_core", p.busiest},
                {"least_core", p.least},
                {"active_cores", p.active_cores},
                {"bins", std::move(bins)},
                {"diverged_share", optional_json(p.lanes.diverged_share)},
                {"waiting_share", optional_json(p.lanes.waiting_share)},
                {"longest_cores", std::move(longest_cores)}};
  if (p.simulated_time)
    stats["simulated_time"] = {{"target", p.simulated_time->target},
                               {"cycles", p.simulated_time->cycles},
                               {"seconds", p.simulated_time->seconds}};
  if (p.chip) stats["chip"] = chip_json(*p.chip);
  json["stats"] = std::move(stats);
  return json;
}

Point point_of_json(const Json& json, const std::string& where) {
  const JsonObject object(json, where);
  if (object.text_or("schema", "") != kSchema) throw Error(where + ": not a point of a study");
  Point p;
  object.read("label", p.label);
  object.read("backend_asked", p.backend_asked);
  object.read("cores", p.cores);
  object.read("repeat", p.repeat);
  object.read("threads", p.threads);
  object.read("status", p.status);
  object.read("exit_status", p.exit_status);
  object.read("message", p.message);
  object.read("command", p.command);
  object.read("started", p.started);
  object.read("wall_seconds", p.wall_seconds);
  object.read("cpu_seconds", p.cpu_seconds);
  object.read("max_rss_bytes", p.max_rss_bytes);
  object.read("load", p.load);
  object.read("others", p.others);
  const JsonObject output = object.object("output");
  output.read("bytes", p.output_bytes);
  output.read("sha256", p.output_sha256);
  if (object.has("claim")) {  // points of gpusim before 2026-11-26 lack them
    p.machine = object.get("machine");
    if (!p.machine.is_null()) {
      const JsonObject machine = object.object("machine");
      for (const char* key : {"processor", "system"}) (void)machine.text_or(key, "");
      for (const char* key : {"host_threads", "memory_bytes"}) (void)machine.number_or(key, 0);
    }
    object.read("session", p.session);
    object.read("claim", p.claim);
  }
  if (!p.ok()) return p;
  const JsonObject s = object.object("stats");
  s.read("isa", p.isa);
  s.read("backend", p.backend);
  s.read("device", p.device);
  s.read("guest_instructions", p.instructions);
  s.read("micro_ops", p.micro_ops);
  p.classes = counts_of(s.object("classes"));
  s.read("seconds", p.seconds);
  s.read("mips", p.mips);
  s.read("memory_is_placed", p.memory_is_placed);
  p.functions = stored_parts(s.objects("functions"));
  p.lines = stored_parts(s.objects("lines"));
  s.read("busiest_core", p.busiest);
  s.read("least_core", p.least);
  s.read("active_cores", p.active_cores);
  for (const JsonObject& one : s.objects("bins")) {
    Bin b;
    one.read("cores", b.cores);
    one.read("least", b.least);
    one.read("most", b.most);
    b.classes = counts_of(one.object("classes"));
    b.mean = b.cores ? static_cast<double>(sum(b.classes)) / b.cores : 0;
    p.bins.push_back(b);
  }
  p.lanes = {optional_of(s.get("diverged_share")), optional_of(s.get("waiting_share"))};
  if (s.has("simulated_time")) {
    const JsonObject t = s.object("simulated_time");
    SimulatedTime& time = p.simulated_time.emplace();
    t.read("target", time.target);
    t.read("cycles", time.cycles);
    t.read("seconds", time.seconds);
  }
  if (s.has("chip")) {
    const JsonObject c = s.object("chip");
    ChipRun& chip = p.chip.emplace();
    c.read("name", chip.name);
    chip.cycles = c.number("cycles");
    chip.seconds = c.number("seconds");
    chip.instructions_per_cycle = c.number("instructions_per_cycle");
    chip.stack = stored_numbers(c.object("stack"));
    const JsonObject energy = c.object("energy");
    chip.joules = energy.number("joules");
    chip.energy = stored_numbers(energy.object("parts"));
  }
  if (s.has("longest_cores")) {  // studies of gpusim before 2026-11-23 lack them
    for (const JsonObject& core : s.objects("longest_cores"))
      p.longest_cores.add(counts_of(core));
    const uint32_t listed = p.longest_cores.active_cores();
    if (p.active_cores < listed) throw Error(where + ": \"active_cores\" is too small");
    p.longest_cores.add_covered(p.active_cores - listed);
  }
  return p;
}

std::optional<Point> load_point(const std::string& path, const Json& identity) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("identity") || json["identity"] != identity)
    return std::nullopt;
  try {
    return point_of_json(json, path);
  } catch (const Error&) {
    return std::nullopt;  // to be run anew
  }
}

}  // namespace gpusim::sweep
