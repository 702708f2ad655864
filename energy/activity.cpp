#include "energy/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/base/nearest_name.h"
#include "energy/quantities.h"
#include "energy/trace.h"

namespace gpusim::energy {
namespace {

using Json = nlohmann::ordered_json;

uint64_t count(const JsonObject& o, const std::string& key) {
  const Json& v = o.get(key);
  if (v.is_number_unsigned()) return v.get<uint64_t>();
  // NaN has no place in JSON; writers put null or a text instead.
  o.fail(fmt::format("\"{}\" is {}; a count (a whole number, not negative) is expected", key,
                     v.dump()));
}

enum class Classes { kAll, kThoseThatOccur };

ClassCounts class_counts(const JsonObject& owner, Classes which) {
  const JsonObject o = owner.object("classes");
  ClassCounts counts{};
  for (int c = 0; c < kInsnClassCount; ++c) {
    if (which == Classes::kThoseThatOccur && !o.has(kInsnClassNames[c])) continue;
    counts[static_cast<size_t>(c)] = count(o, kInsnClassNames[c]);
  }
  for (const auto& item : o.json().items())
    if (std::find(std::begin(kInsnClassNames), std::end(kInsnClassNames), item.key()) ==
        std::end(kInsnClassNames))
      o.fail(fmt::format("unknown instruction class \"{}\"{}", item.key(),
                         did_you_mean(item.key(), kInsnClassNames)));
  if (owner.has("guest_instructions") &&
      count(owner, "guest_instructions") != instructions_of(counts))
    owner.fail(fmt::format("\"guest_instructions\" is {}, but the classes add up to {}",
                           count(owner, "guest_instructions"), instructions_of(counts)));
  return counts;
}

std::vector<ActivityPart> parts(const JsonObject& file, const std::string& list,
                                const std::string& name_key, const ClassCounts& whole,
                                Classes which) {
  std::vector<ActivityPart> found;
  if (!file.has(list)) return found;
  const Json& array = file.get(list);
  if (!array.is_array()) file.fail(fmt::format("\"{}\" must be a list", list));
  ClassCounts sum{};
  for (size_t i = 0; i < array.size(); ++i) {
    const JsonObject o(array[i], fmt::format("{}[{}]", file.at(list), i));
    ActivityPart part;
    part.name = o.get(name_key).is_string() ? o.get(name_key).get<std::string>()
                                            : std::to_string(count(o, name_key));
    part.classes = class_counts(o, which);
    for (size_t c = 0; c < sum.size(); ++c) sum[c] += part.classes[c];
    found.push_back(std::move(part));
  }
  if (!found.empty() && sum != whole)
    file.fail(fmt::format("the classes of \"{}\" do not add up to those of the run", list));
  return found;
}

// Of the file's own list, or of all its cores.
LongestCores longest_cores(const JsonObject& file, const Activity& run) {
  LongestCores cores;
  for (const ActivityPart& core : run.per_core) cores.add(core.classes);
  if (!run.per_core.empty() || !file.has("longest_cores")) return cores;
  const Json& array = file.get("longest_cores");
  if (!array.is_array()) file.fail("\"longest_cores\" must be a list");
  for (size_t i = 0; i < array.size(); ++i) {
    const JsonObject o(array[i], fmt::format("{}[{}]", file.at("longest_cores"), i));
    const ClassCounts classes = class_counts(o, Classes::kThoseThatOccur);
    for (size_t c = 0; c < classes.size(); ++c)
      if (classes[c] > run.classes[c]) o.fail("a core cannot execute more than the run");
    cores.add(classes);
  }
  const uint64_t active = count(file, "active_cores");
  if (active < cores.active_cores() || active > run.cores)
    file.fail(fmt::format("\"active_cores\" is {}, with {} listed of {}", active,
                          cores.active_cores(), run.cores));
  cores.add_covered(static_cast<uint32_t>(active) - cores.active_cores());
  return cores;
}

std::vector<ActivitySlice> slices(const JsonObject& file, const ClassCounts& whole) {
  std::vector<ActivitySlice> found;
  if (!file.has("slices")) return found;
  const Json& array = file.get("slices");
  if (!array.is_array()) file.fail("\"slices\" must be a list");
  ClassCounts sum{};
  for (size_t i = 0; i < array.size(); ++i) {
    const JsonObject o(array[i], fmt::format("{}[{}]", file.at("slices"), i));
    const Json& seconds = o.get("seconds");
    if (!seconds.is_number() || !(seconds.get<double>() > 0))
      o.fail(fmt::format("\"seconds\" is {}; a positive number is expected", seconds.dump()));
    found.push_back({seconds.get<double>(), class_counts(o, Classes::kThoseThatOccur)});
    for (size_t c = 0; c < sum.size(); ++c) sum[c] += found.back().classes[c];
  }
  if (!found.empty() && sum != whole)
    file.fail("the classes of \"slices\" do not add up to those of the run");
  return found;
}

CacheActivity cache_activity(const JsonObject& o) {
  CacheActivity c{.line_bytes = count(o, "line_bytes"),
                  .levels = {},
                  .memory_reads = count(o, "memory_reads"),
                  .memory_writes = count(o, "memory_writes"),
                  .accesses = count(o, "accesses"),
                  .off_chip_accesses = count(o, "off_chip_accesses")};
  if (c.line_bytes == 0) o.fail("\"line_bytes\" is 0");
  if (c.off_chip_accesses > c.accesses) o.fail("\"off_chip_accesses\" are more than \"accesses\"");
  const Json& levels = o.get("levels");
  if (!levels.is_array()) o.fail("\"levels\" must be a list");
  for (size_t i = 0; i < levels.size(); ++i) {
    const JsonObject level(levels[i], fmt::format("{}[{}]", o.at("levels"), i));
    c.levels.push_back({count(level, "reads"), count(level, "read_misses"), count(level, "writes"),
                        count(level, "write_misses")});
    if (c.levels.back().read_misses > c.levels.back().reads ||
        c.levels.back().write_misses > c.levels.back().writes)
      level.fail("there are more misses than accesses");
  }
  return c;
}

void read_profile(const JsonObject& o, ActivityPart& part) {
  part.warps = {.instructions = count(o, "instructions"),
                .warp_instructions = count(o, "warp_instructions"),
                .sectors = count(o, "sectors"),
                .store_sectors = count(o, "store_sectors"),
                .atomic_sectors = count(o, "atomic_sectors"),
                .shared_accesses = count(o, "shared_accesses")};
  if (part.warps->store_sectors + part.warps->atomic_sectors > part.warps->sectors)
    o.fail("\"sectors\" are fewer than those of stores and atomics");
  if (o.has("caches")) part.caches = cache_activity(o.object("caches"));
}

// What caches on the chip served moves from off-chip to on-chip memory.
void place_memory(ClassCounts& classes, const CacheActivity& caches) {
  uint64_t& off = classes[static_cast<size_t>(InsnClass::kOffChipMemory)];
  const uint64_t served = std::min(off, caches.accesses - caches.off_chip_accesses);
  off -= served;
  classes[static_cast<size_t>(InsnClass::kOnChipMemory)] += served;
}

// Kernels of PTX: classes are made of opcodes. As many cores as the largest launch has threads.
void read_kernels(const JsonObject& file, Activity& a) {
  const Json& array = file.get("kernels");
  if (!array.is_array()) file.fail("\"kernels\" must be a list");
  uint64_t cores = 0;
  for (size_t i = 0; i < array.size(); ++i) {
    const JsonObject o(array[i], fmt::format("{}[{}]", file.at("kernels"), i));
    ActivityPart part;
    part.name = o.text("name");
    const JsonObject opcodes = o.object("opcodes");
    for (const auto& item : opcodes.json().items()) {
      const uint64_t executions = count(opcodes, item.key());
      part.opcodes[item.key()] += executions;
      a.opcodes[item.key()] += executions;
      part.classes[static_cast<size_t>(ptx_class(item.key(), a.scheme))] += executions;
    }
    if (o.has("instructions") && count(o, "instructions") != instructions_of(part.classes))
      o.fail(fmt::format("\"instructions\" is {}, but the opcodes add up to {}",
                         count(o, "instructions"), instructions_of(part.classes)));
    if (o.has("profile")) read_profile(o.object("profile"), part);
    if (part.caches) place_memory(part.classes, *part.caches);
    for (size_t c = 0; c < a.classes.size(); ++c) a.classes[c] += part.classes[c];
    if (o.has("threads") && o.has("launches"))
      cores = std::max(cores, count(o, "threads") / std::max<uint64_t>(1, count(o, "launches")));
    a.functions.push_back(std::move(part));
  }
  if (a.instructions() == 0) file.fail("the tallies are empty: nothing was executed");
  a.memory_is_placed = std::all_of(
      a.functions.begin(), a.functions.end(),
      [](const ActivityPart& p) { return p.caches || instructions_of(p.classes) == 0; });
  a.cores = static_cast<uint32_t>(std::min<uint64_t>(cores, ~uint32_t{0}));
}

}  // namespace

uint64_t instructions_of(const ClassCounts& classes) {
  return std::accumulate(classes.begin(), classes.end(), uint64_t{0});
}

uint64_t Activity::instructions() const { return instructions_of(classes); }

Activity parse_stats(const std::string& text, const std::string& origin, PtxClasses scheme) {
  const Json json = parse_json(text, origin);
  const JsonObject file(json, origin);
  Activity a;
  a.name = origin;
  a.scheme = scheme;
  if (file.has("kernels")) {
    read_kernels(file, a);
    return a;
  }
  if (scheme != PtxClasses::kOurs)
    file.fail("the thesis's classes are of PTX: there are no \"kernels\" with their opcodes");
  if (!file.has("classes"))
    file.fail("\"classes\" is missing: not statistics of `gpusim run --stats`");
  a.classes = class_counts(file, Classes::kAll);
  if (a.instructions() == 0) file.fail("the tallies are empty: nothing was executed");
  if (file.has("cores")) {
    const uint64_t cores = count(file, "cores");
    if (cores == 0 || cores > ~uint32_t{0}) file.fail("\"cores\" is out of range");
    a.cores = static_cast<uint32_t>(cores);
  }
  a.memory_is_placed = file.has("caches") || file.has("chip");
  a.functions = parts(file, "functions", "function", a.classes, Classes::kThoseThatOccur);
  a.lines = parts(file, "lines", "line", a.classes, Classes::kThoseThatOccur);
  a.per_core = parts(file, "per_core", "core", a.classes, Classes::kAll);
  a.longest_cores = longest_cores(file, a);
  a.slices = slices(file, a.classes);
  return a;
}

Activity load_activity(const std::string& path, PtxClasses scheme) {
  const std::string text = read_text_of(
      path,
      "the statistics of a run, which `gpusim run --stats FILE.json` writes, or a trace of "
      "instructions");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw Error(fmt::format("{}: the file is empty", path));
  if (text[first] != '{' && scheme != PtxClasses::kOurs)
    throw Error(fmt::format("{}: a trace has its classes already", path));
  return text[first] == '{' ? parse_stats(text, path, scheme)
                            : activity_of_trace(parse_trace(text, path), path);
}

}  // namespace gpusim::energy
