#include "host/stats_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "device_sim/base/error.h"
#include "device_sim/base/json_object.h"
#include "device_sim/uir/insn_class.h"
#include "energy/longest_cores.h"
#include "host/run/stop_report.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

struct PartStats {
  std::string path;
  Json stats;
  uint32_t number = 0, of = 0;
};

void check_parts(std::vector<PartStats>& parts) {
  std::ranges::stable_sort(parts, {}, &PartStats::number);
  const PartStats& first = parts.front();
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartStats& p = parts[i];
    for (const char* key : {"isa", "backend"})
      if (p.stats.at(key) != first.stats.at(key))
        throw Error(
            fmt::format("{} and {} are no parts of one run: {} differs", first.path, p.path, key));
    for (const char* key : {"of", "all_cores", "program_hash", "entry", "call"})
      if (p.stats.at("part").at(key) != first.stats.at("part").at(key))
        throw Error(
            fmt::format("{} and {} are no parts of one run: \"{}\" of their \"part\" differs",
                        first.path, p.path, key));
    if (i > 0 && parts[i - 1].number == p.number)
      throw Error(fmt::format("{} and {} are the same part", parts[i - 1].path, p.path));
  }
  if (parts.size() == first.of) return;
  std::vector<uint32_t> missing;
  for (uint32_t k = 1; k <= first.of; ++k)
    if (std::ranges::find(parts, k, &PartStats::number) == parts.end()) missing.push_back(k);
  throw Error(fmt::format("of {} parts {} {} missing: run the same command with --part {}/{}",
                          first.of, core_ranges(missing), missing.size() == 1 ? "is" : "are",
                          missing.front(), first.of));
}

uint64_t sum_of(const std::vector<PartStats>& parts, const char* key) {
  uint64_t sum = 0;
  for (const PartStats& p : parts) sum += p.stats.at(key).get<uint64_t>();
  return sum;
}

// Numbers of the same key are added.
Json added(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) throw std::invalid_argument("no counts");
  Json sum = a;
  for (const auto& [key, value] : b.items())
    sum[key] = sum.value(key, uint64_t{0}) + value.get<uint64_t>();
  return sum;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Sums, but for the share that follows from them.
Json added_lanes(const std::vector<PartStats>& parts, const char* key) {
  Json sum;
  for (const PartStats& p : parts) {
    Json one = p.stats.at(key);
    if (!one.is_object()) return nullptr;
    one.erase("lost_share");
    sum = sum.is_null() ? one : added(sum, one);
  }
  sum["lost_share"] = 0.0;
  return sum;
}

// In the order of the instruction classes.
Json ordered_classes(const Json& classes) {
  Json list = Json::object();
  for (const char* name : kInsnClassNames)
    if (classes.contains(name)) list[name] = classes[name];
  return list;
}

// Functions or lines: most instructions first, then by name, as one run has them.
Json added_places(const std::vector<PartStats>& parts, const char* list_key, const char* name_key) {
  std::map<std::string, std::pair<uint64_t, Json>> sums;
  for (const PartStats& p : parts)
    for (const Json& place : p.stats.at(list_key)) {
      auto& [count, classes] = sums[place.at(name_key).get<std::string>()];
      count += place.at("guest_instructions").get<uint64_t>();
      classes = added(classes.is_null() ? Json::object() : classes, place.at("classes"));
    }
  std::vector<std::pair<std::string, std::pair<uint64_t, Json>>> places(sums.begin(), sums.end());
  std::ranges::stable_sort(places, std::greater{},
                           [](const auto& place) { return place.second.first; });
  Json list = Json::array();
  for (auto& [name, use] : places)
    list.push_back({{name_key, name},
                    {"guest_instructions", use.first},
                    {"classes", ordered_classes(use.second)}});
  return list;
}

// "0-55, 60"
std::vector<uint32_t> cores_of(const std::string& text) {
  std::vector<uint32_t> cores;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    uint32_t first = 0, last = 0;
    at = std::from_chars(at, end, first).ptr;
    last = first;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    constexpr uint32_t kMostCores = 1u << 24;
    if (last < first || last >= kMostCores) break;
    for (uint32_t core = first; core <= last; ++core) cores.push_back(core);
    while (at < end && (*at == ',' || *at == ' ')) ++at;
    if (at < end && (*at < '0' || *at > '9')) break;
  }
  return cores;
}

uint64_t address_of(const Json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

// Cores that stopped for the same reason at the same place are one report, over all parts.
void add_faults(const std::vector<PartStats>& parts, Json& merged) {
  Json faults = Json::array(), reports = Json::array();
  std::map<std::string, size_t> known;
  for (const PartStats& p : parts) {
    std::vector<size_t> number;  // of the part's reports among all
    for (const Json& report : p.stats.at("fault_reports")) {
      Json kind = {{"reason", report.at("reason")}};
      kind.update(report);
      for (const char* key : {"cores", "core_list", "addresses"}) kind.erase(key);
      const auto [at, is_new] = known.try_emplace(kind.dump(), reports.size());
      number.push_back(at->second);
      if (is_new) {
        reports.push_back(report);
        continue;
      }
      Json& all = reports[at->second];
      all["cores"] = all["cores"].get<uint64_t>() + report.at("cores").get<uint64_t>();
      std::vector<uint32_t> cores = cores_of(all["core_list"].get<std::string>());
      const auto more = cores_of(report.at("core_list").get<std::string>());
      cores.insert(cores.end(), more.begin(), more.end());
      all["core_list"] = core_ranges(cores, cores.size());
      if (!report.contains("addresses")) continue;
      const Json &mine = all["addresses"], &theirs = report["addresses"];
      all["addresses"] = {
          fmt::format("{:#x}", std::min(address_of(mine[0]), address_of(theirs[0]))),
          fmt::format("{:#x}", std::max(address_of(mine[1]), address_of(theirs[1])))};
    }
    for (Json fault : p.stats.at("faults")) {
      fault["report"] = number.at(fault.at("report").get<size_t>());
      faults.push_back(std::move(fault));
    }
  }
  merged["faults"] = std::move(faults);
  merged["fault_reports"] = std::move(reports);
}

void add_longest_cores(const std::vector<PartStats>& parts, Json& merged) {
  energy::LongestCores longest;
  for (const PartStats& p : parts) {
    if (!p.stats.contains("longest_cores")) continue;
    uint32_t listed = 0;
    for (const Json& core : p.stats.at("longest_cores")) {
      ClassCounts counts{};
      for (size_t c = 0; c < kInsnClassCount; ++c)
        counts[c] = core.at("classes").value(kInsnClassNames[c], uint64_t{0});
      longest.add(counts);
      ++listed;
    }
    longest.add_covered(p.stats.at("active_cores").get<uint32_t>() - listed);
  }
  if (longest.active_cores() == 0) return;
  Json list = Json::array();
  for (const ClassCounts& core : longest.list()) {
    Json classes = Json::object();
    for (size_t c = 0; c < kInsnClassCount; ++c)
      if (core[c] != 0) classes[kInsnClassNames[c]] = core[c];
    list.push_back({{"classes", std::move(classes)}});
  }
  merged["active_cores"] = longest.active_cores();
  merged["longest_cores"] = std::move(list);
}

Json merged_of(const std::vector<PartStats>& parts) {
  const Json& first = parts.front().stats;
  Json classes = first.at("classes");
  double seconds = first.at("seconds");
  int status = first.at("exit_status");
  for (const PartStats& p : parts) {
    if (&p == &parts.front()) continue;
    classes = added(classes, p.stats.at("classes"));
    seconds = std::max(seconds, p.stats.at("seconds").get<double>());
    // Of core 0, or of the first that failed.
    if (status == 0) status = p.stats.at("exit_status");
  }
  const uint64_t instructions = sum_of(parts, "guest_instructions");
  Json merged = {{"isa", first.at("isa")},
                 {"backend", first.at("backend")},
                 {"device", first.at("device")},
                 {"cores", sum_of(parts, "cores")},
                 {"guest_instructions", instructions},
                 {"classes", std::move(classes)},
                 {"micro_ops", sum_of(parts, "micro_ops")},
                 {"seconds", seconds},
                 {"mips", seconds > 0 ? static_cast<double>(instructions) / seconds / 1e6 : 0},
                 {"exit_status", status},
                 {"divergence", added_lanes(parts, "divergence")},
                 {"waiting", added_lanes(parts, "waiting")}};
  const bool lanes_are_known = merged["divergence"].is_object();
  const uint64_t all =
      lanes_are_known ? merged["divergence"]["lane_slots"].get<uint64_t>() : instructions;
  if (lanes_are_known)
    merged["divergence"]["lost_share"] =
        share(merged["divergence"]["diverged_lanes"].get<uint64_t>(), all);
  Json& waiting = merged["waiting"];
  waiting["lost_share"] =
      share(waiting["instructions"].get<uint64_t>() + waiting["asleep_lanes"].get<uint64_t>(), all);
  add_faults(parts, merged);
  merged["functions"] = added_places(parts, "functions", "function");
  merged["lines"] = added_places(parts, "lines", "line");
  const bool has_cores =
      std::ranges::all_of(parts, [](const PartStats& p) { return p.stats.contains("per_core"); });
  if (has_cores) {
    Json list = Json::array();
    for (const PartStats& p : parts)
      for (const Json& core : p.stats.at("per_core")) list.push_back(core);
    merged["per_core"] = std::move(list);
  }
  add_longest_cores(parts, merged);
  return merged;
}

}  // namespace

Json merged_stats(std::vector<std::pair<std::string, Json>> files) {
  if (files.empty()) throw Error("there is nothing to put together");
  std::vector<PartStats> parts;
  for (auto& [path, stats] : files) {
    if (!stats.is_object() || !stats.contains("part") || !stats["part"].is_object())
      throw Error(fmt::format(
          "{}: not the statistics of a part: `gpusim run --memory private --part K/N --stats FILE` "
          "writes them",
          path));
    PartStats& p = parts.emplace_back();
    const JsonObject part(stats["part"], path + ".part");
    part.read("number", p.number);
    part.read("of", p.of);
    if (p.number == 0 || p.number > p.of) part.fail("\"number\" is not one of 1 to \"of\"");
    p.path = path;
    p.stats = std::move(stats);
  }
  std::string where;  // the files that may be damaged
  for (const PartStats& p : parts) where += (where.empty() ? "" : ", ") + p.path;
  try {
    check_parts(parts);
    return merged_of(parts);
  } catch (const Json::exception& error) {
    throw Error(
        fmt::format("{}: not all are statistics of `gpusim run`, or one is damaged", where));
  } catch (const std::logic_error& error) {  // numbers that are none, of no report
    throw Error(
        fmt::format("{}: not all are statistics of `gpusim run`, or one is damaged", where));
  }
}

}  // namespace gpusim::host
