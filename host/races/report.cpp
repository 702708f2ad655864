#include "host/races/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "host/run/call_frames.h"
#include "host/run/object_at.h"
#include "host/run/profile.h"
#include "host/run/source_lines.h"
#include "translator/common/translator.h"

namespace gpusim::host::races {
namespace {

constexpr size_t kMostListed = 20;

const char* what_of(uint8_t kind) {
  if (kind & Cell::kReadsAndWrites) return "updates atomically";
  return kind & Cell::kWrite ? "writes" : "reads";
}

// Where "qsort [libc.so.6]" begins to name the shared object: names of C++ may hold brackets, too.
size_t object_begin(const std::string& function) {
  return function.ends_with(']') ? std::min(function.rfind(" ["), function.size())
                                 : function.size();
}

// Functions of the C library that work on the memory of whoever calls them.
bool works_for_caller(const std::string& function) {
  std::string_view name = function;
  while (name.starts_with('_')) name.remove_prefix(1);
  return name.starts_with("mem") || name.starts_with("str");
}

class Names {
 public:
  Names(const Module& module, const std::string& program)
      : module_(module), lines_(program, &module) {
    // Run-time systems may come with lines of their own.
    for (const char* begin : {"main", "gpusim_main"})
      if (const Symbol* s = find_symbol(module, begin))
        has_lines_ |= !lines_.at(s->address).empty();
  }
  struct Named {
    std::string function, source;
    bool is_library = false;
  };
  const Named& at(uint64_t pc) {
    const auto [place, is_new] = named_.try_emplace(pc);
    Named& n = place->second;
    if (!is_new) return n;
    n.function = function_at(module_, pc);
    n.source = lines_.at(pc);
    const std::string name = n.function.substr(0, object_begin(n.function));
    n.is_library =
        !works_for_caller(name) && (has_library_name(name) || (has_lines_ && n.source.empty()));
    return n;
  }

 private:
  const Module& module_;
  SourceLines lines_;
  bool has_lines_ = false;
  std::unordered_map<uint64_t, Named> named_;
};

std::string access_text(const ReportedAccess& a, bool is_first) {
  std::string where = a.function;
  if (!where.starts_with("0x") && !where.starts_with("[") && where.find('(') == std::string::npos)
    where.insert(object_begin(where), "()");
  if (!a.source.empty()) where += " at " + a.source;
  return fmt::format("    core {} {} in {}{}\n", a.core, a.what, where, is_first ? ", and" : "");
}

nlohmann::ordered_json access_json(const ReportedAccess& a) {
  return {{"core", a.core},
          {"access", a.what},
          {"function", a.function},
          {"line", a.source},
          {"pc", fmt::format("{:#x}", a.pc)}};
}

}  // namespace

RaceReport make_report(Detector& detector, const Module& module, const MachineConfig& config,
                       const std::string& program) {
  Names names(module, program);
  RaceReport report;
  report.accesses = detector.accesses();
  report.shared_clocks = detector.shared_clocks();
  // Which of the two was seen first says nothing.
  using Line = std::tuple<std::string, std::string, std::string>;
  std::map<std::pair<Line, Line>, size_t> number_of;
  for (const auto& [places, race] : detector.races()) {
    const Names::Named &first = names.at(places.first.pc), &second = names.at(places.second.pc);
    if (first.is_library && second.is_library) {
      report.in_libraries += race.count;
      continue;
    }
    ReportedRace r{.first = {race.first_core, places.first.pc, first.function, first.source,
                             what_of(places.first.kind)},
                   .second = {race.second_core, places.second.pc, second.function, second.source,
                              what_of(places.second.kind)},
                   .object = object_at(module, config, race.address),
                   .address = race.address,
                   .bytes = race.bytes,
                   .count = race.count};
    const auto line = [](const ReportedAccess& a) {
      return Line{a.function, a.source.empty() ? fmt::format("{:#x}", a.pc) : a.source, a.what};
    };
    std::pair<Line, Line> key(line(r.first), line(r.second));
    if (key.second < key.first) {
      std::swap(key.first, key.second);
      std::swap(r.first, r.second);
    }
    const auto [place, is_new] = number_of.try_emplace(key, report.races.size());
    if (is_new)
      report.races.push_back(std::move(r));
    else
      report.races[place->second].count += race.count;
  }
  std::stable_sort(report.races.begin(), report.races.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return report;
}

std::string report_text(const RaceReport& report) {
  std::string text;
  for (size_t i = 0; i < std::min(report.races.size(), kMostListed); ++i) {
    const ReportedRace& r = report.races[i];
    const std::string place = fmt::format("{:#x}", r.address);
    text += fmt::format("gpusim: data race on {}{}, {} byte{}, seen {} time{}:\n", r.object,
                        r.object == place ? "" : " at " + place, r.bytes, r.bytes == 1 ? "" : "s",
                        r.count, r.count == 1 ? "" : "s");
    text += access_text(r.first, true) + access_text(r.second, false);
  }
  const bool has_lines = std::any_of(report.races.begin(), report.races.end(), [](const auto& r) {
    return !r.first.source.empty() || !r.second.source.empty();
  });
  if (report.races.size() > kMostListed)
    text += fmt::format("gpusim: and {} more; --stats FILE.json lists all\n",
                        report.races.size() - kMostListed);
  if (!report.races.empty() && !has_lines)
    text += "gpusim: compile the program with -g to see source lines here\n";
  if (report.races.empty()) text += "gpusim: no data races were seen in this run\n";
  if (report.shared_clocks != 0)
    text += fmt::format(
        "gpusim: {} words that synchronise share clocks with others: races may be hidden\n",
        report.shared_clocks);
  return text;
}

nlohmann::ordered_json report_json(const RaceReport& report) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReportedRace& r : report.races)
    list.push_back({{"object", r.object},
                    {"address", fmt::format("{:#x}", r.address)},
                    {"bytes", r.bytes},
                    {"count", r.count},
                    {"first", access_json(r.first)},
                    {"second", access_json(r.second)}});
  return {{"found", std::move(list)},
          {"in_libraries", report.in_libraries},
          {"accesses", report.accesses},
          {"words_with_shared_clocks", report.shared_clocks}};
}

}  // namespace gpusim::host::races
