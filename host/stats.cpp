#include "host/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "energy/report.h"
#include "host/caches/report.h"
#include "host/chip/report.h"
#include "host/races/report.h"
#include "host/uninitialised/report.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

Json classes_json(const ClassCounts& classes) {
  Json object = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c) object[kInsnClassNames[c]] = classes[c];
  return object;
}

Json classes_that_occur(const ClassCounts& counts) {
  Json classes = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c)
    if (counts[c] != 0) classes[kInsnClassNames[c]] = counts[c];
  return classes;
}

// Of a part of the program.
Json parts_json(const char* key, const std::vector<ProfilePart>& parts) {
  Json list = Json::array();
  for (const ProfilePart& part : parts) {
    list.push_back({{key, part.name},
                    {"guest_instructions", Tally{part.classes, 0}.instructions()},
                    {"classes", classes_that_occur(part.classes)}});
  }
  return list;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json divergence_json(const LaneSummary& s) {
  if (!s.lanes_are_known) return nullptr;
  const GroupUse& u = s.lanes;
  return {{"lane_slots", u.offered},
          {"active_lanes", u.active},
          {"diverged_lanes", u.diverged},
          {"asleep_lanes", u.asleep},
          {"idle_lanes", u.offered - u.active - u.diverged - u.asleep},
          {"alone_lanes", u.alone},
          {"lost_share", share(u.diverged, u.offered)}};
}

Json waiting_json(const RunSummary& s) {
  const uint64_t all = s.lanes.lanes_are_known ? s.lanes.lanes.offered : s.tally.instructions();
  const uint64_t asleep = s.lanes.lanes.asleep;
  return {{"instructions", s.lanes.in_vain},
          {"asleep_lanes", asleep},
          {"lost_share", share(s.lanes.in_vain + asleep, all)}};
}

Json time_json(const RunSummary::Time& time, bool per_core) {
  const double all = std::accumulate(time.cycles.begin(), time.cycles.end(), 0.0);
  const double waited = std::accumulate(time.waited.begin(), time.waited.end(), 0.0);
  Json object = {{"timing", time.timing},
                 {"clock_hz", time.clock.value()},
                 {"cycles", time.most_cycles()},
                 {"seconds", time.seconds()},
                 {"waited_share", all > 0 ? waited / all : 0}};
  if (!per_core) return object;
  Json list = Json::array();
  for (size_t core = 0; core < time.cycles.size(); ++core)
    list.push_back({{"core", core},
                    {"cycles", time.cycles[core]},
                    {"waited_cycles", time.waited[core]}});
  object["per_core"] = std::move(list);
  return object;
}

Json frames_json(const std::vector<CallFrame>& stack) {
  Json list = Json::array();
  for (const CallFrame& f : stack)
    list.push_back(
        {{"function", f.function}, {"source", f.source}, {"pc", fmt::format("{:#x}", f.pc)}});
  return list;
}

Json fault_reports_json(const std::vector<StopReport>& reports) {
  Json list = Json::array();
  for (const StopReport& r : reports) {
    Json report = {{"reason", r.first.reason},
                   {"cores", r.cores.size()},
                   {"core_list", core_ranges(r.cores, r.cores.size())},
                   {"exit_status", r.first.exit_status},
                   {"pc", r.has_place ? fmt::format("{:#x}", r.first.pc) : ""},
                   {"symbol", r.has_place ? r.first.symbol : ""},
                   {"source", r.stack.empty() ? "" : r.stack.front().source},
                   {"stack", frames_json(r.stack)}};
    if (r.first.has_address)
      report["addresses"] = {fmt::format("{:#x}", r.lowest), fmt::format("{:#x}", r.highest)};
    list.push_back(std::move(report));
  }
  return list;
}

uint64_t sum(const ClassCounts& classes) { return Tally{classes, 0}.instructions(); }

}  // namespace

double RunSummary::mips() const {
  return seconds > 0 ? static_cast<double>(tally.instructions()) / seconds / 1e6 : 0;
}

Json stats_json(const RunSummary& s) {
  Json faults = Json::array();
  for (const StopRecord& stop : s.stops) {
    Json fault = {{"core", stop.core},
                  {"pc", fmt::format("{:#x}", stop.pc)},
                  {"symbol", stop.symbol},
                  {"reason", stop.reason},
                  {"instruction", stop.instruction},
                  {"exit_status", stop.exit_status},
                  {"report", stop.report}};
    if (stop.has_address) fault["address"] = fmt::format("{:#x}", stop.address);
    faults.push_back(std::move(fault));
  }
  Json object = {{"isa", s.isa},
                 {"backend", s.backend},
                 {"device", s.device},
                 {"cores", s.cores},
                 {"guest_instructions", s.tally.instructions()},
                 {"classes", classes_json(s.tally.classes)},
                 {"micro_ops", s.tally.micro_ops},
                 {"seconds", s.seconds},
                 {"mips", s.mips()},
                 {"exit_status", s.exit_status},
                 {"divergence", divergence_json(s.lanes)},
                 {"waiting", waiting_json(s)},
                 {"faults", std::move(faults)},
                 {"fault_reports", fault_reports_json(s.stop_reports)},
                 {"functions", parts_json("function", s.profile.functions)},
                 {"lines", parts_json("line", s.profile.lines)}};
  if (s.part.of != 0)
    object["part"] = {{"number", s.part.number},
                      {"of", s.part.of},
                      {"first_core", s.part.first_core},
                      {"all_cores", s.part.all_cores},
                      {"program_hash", fmt::format("{:016x}", s.part.program_hash)},
                      {"entry", s.part.entry},
                      {"call", s.part.call}};
  if (!s.per_core.empty()) {
    Json list = Json::array();
    for (size_t core = 0; core < s.per_core.size(); ++core)
      list.push_back({{"core", s.part.first_core + core},
                      {"guest_instructions", sum(s.per_core[core])},
                      {"classes", classes_json(s.per_core[core])}});
    object["per_core"] = std::move(list);
  }
  if (s.longest_cores.active_cores() > 0) {
    Json list = Json::array();
    for (const ClassCounts& core : s.longest_cores.list())
      list.push_back({{"classes", classes_that_occur(core)}});
    object["active_cores"] = s.longest_cores.active_cores();
    object["longest_cores"] = std::move(list);
  }
  if (s.caches) object["caches"] = caches_json(s.caches->shape, s.caches->report);
  if (s.chip) object["chip"] = chip::chip_json(*s.chip, !s.per_core.empty());
  if (s.races) object["races"] = races::report_json(*s.races);
  if (s.uninitialised) object["uninitialised"] = uninitialised::report_json(*s.uninitialised);
  if (s.simulated_time)
    object["simulated_time"] = time_json(*s.simulated_time, !s.per_core.empty());
  if (!s.slices.empty()) {
    Json list = Json::array();
    for (const energy::ActivitySlice& slice : s.slices)
      list.push_back({{"seconds", slice.seconds}, {"classes", classes_that_occur(slice.classes)}});
    object["slices"] = std::move(list);
  }
  if (!s.energy_targets.empty()) {
    const energy::Activity activity = activity_of(s);
    object["energy"] = energy::report_json(activity, estimates_of(s, activity))["targets"];
  }
  return object;
}

energy::Activity activity_of(const RunSummary& s) {
  energy::Activity a;
  a.name = s.program;
  a.cores = s.cores;
  a.classes = s.tally.classes;
  a.memory_is_placed = s.caches.has_value() || s.chip;
  for (const ProfilePart& f : s.profile.functions) a.functions.push_back({f.name, f.classes});
  for (const ProfilePart& l : s.profile.lines) a.lines.push_back({l.name, l.classes});
  for (size_t core = 0; core < s.per_core.size(); ++core)
    a.per_core.push_back({std::to_string(core), s.per_core[core]});
  a.longest_cores = s.longest_cores;
  return a;
}

std::vector<energy::Estimate> estimates_of(const RunSummary& s, const energy::Activity& activity) {
  std::vector<energy::Estimate> list;
  if (activity.instructions() == 0) return list;
  for (const energy::Target& target : s.energy_targets)
    list.push_back(energy::estimate(target, activity, {}));
  return list;
}

void write_stats(const RunSummary& summary, const OutputFile& file) {
  const Json json = stats_json(summary);
  file.write(file.path().ends_with(".csv")
                 ? stats_csv(json)
                 : json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace gpusim::host
