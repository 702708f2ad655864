#include "host/run/stop_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/core/memory_view.h"

namespace gpusim::host {
namespace {

constexpr size_t kMostStackLines = 12;

std::string addresses(const StopReport& report) {
  if (!report.first.has_address) return {};
  std::string text = report.lowest == report.highest
                         ? fmt::format(", address {:#x}", report.lowest)
                         : fmt::format(", addresses {:#x} to {:#x}", report.lowest, report.highest);
  if (report.highest < kPageSize) text += " (a null pointer?)";
  return text;
}

// Where the innermost frame stands, beside its line.
std::string place_detail(const StopRecord& record) {
  if (record.pc == 0) return {};
  std::string text = fmt::format(" at pc {:#x}", record.pc);
  if (!record.symbol.empty() && !record.symbol.starts_with("0x"))
    text += fmt::format(" ({})", record.symbol);
  return record.instruction.empty() ? "," + text : ": " + record.instruction + text;
}

}  // namespace

std::string core_ranges(std::vector<uint32_t> cores, size_t most_ranges) {
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0, end = 0; i < cores.size(); i = end) {
    for (end = i + 1; end < cores.size() && cores[end] == cores[end - 1] + 1; ++end) {
    }
    if (!text.empty()) text += ", ";
    if (ranges++ == most_ranges) return text + "...";
    text += end - i > 1 ? fmt::format("{}-{}", cores[i], cores[end - 1])
                        : fmt::format("{}", cores[i]);
  }
  return text;
}

std::string core_list(std::vector<uint32_t> cores) {
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.size() == 1) return fmt::format("core {}", cores.front());
  const size_t count = cores.size();
  return fmt::format("cores {} ({} cores)", core_ranges(std::move(cores)), count);
}

StopReports::Key StopReports::key(const StopRecord& record, const CallStack& calls,
                                  bool has_place) {
  Key key{record.reason, has_place ? record.pc : 0, {}};
  for (const CallPlace& place : calls.places) std::get<2>(key).push_back(place.pc);
  return key;
}

uint32_t StopReports::add(const StopRecord& record, const CallStack& stack,
                          const std::function<std::vector<CallFrame>()>& frames) {
  Key kind = key(record, stack, true);
  auto it = numbers_.find(kind);
  const bool has_place = it != numbers_.end() || reports_.size() < kMostReports;
  if (!has_place) it = numbers_.find(kind = key(record, {}, false));
  if (it == numbers_.end()) {
    StopReport report{.first = record,
                      .calls = has_place ? stack : CallStack{},
                      .stack = has_place ? frames() : std::vector<CallFrame>{},
                      .has_place = has_place,
                      .lowest = record.address,
                      .highest = record.address,
                      .cores = {}};
    it = numbers_.emplace(std::move(kind), static_cast<uint32_t>(reports_.size())).first;
    reports_.push_back(std::move(report));
  }
  StopReport& report = reports_[it->second];
  report.lowest = std::min(report.lowest, record.address);
  report.highest = std::max(report.highest, record.address);
  report.cores.push_back(record.core);
  return it->second;
}

void StopReports::find_frames(
    const std::function<std::vector<CallFrame>(const CallStack&)>& frames) {
  for (StopReport& report : reports_)
    if (report.has_place) report.stack = frames(report.calls);
}

void StopReports::say(const StopReport& report) const {
  line_(fmt::format("{}: {}{}", core_list(report.cores), report.first.reason, addresses(report)));
  for (const std::string& line :
       stack_text(report.stack, place_detail(report.first), kMostStackLines))
    line_("  " + line);
  if (report.calls.is_cut) line_("  and more callers");
  if (report.calls.bad_return)
    line_(
        fmt::format("  which would return to {:#x}, where no code is: the stack may be overwritten",
                    *report.calls.bad_return));
}

void StopReports::say_short(const StopReport& report, std::span<const uint32_t> cores,
                            const char* how) const {
  const std::vector<std::string> where = stack_text(report.stack, {}, 1);
  line_(fmt::format("{}: {}{}{}{}", core_list({cores.begin(), cores.end()}), report.first.reason,
                    addresses(report), where.empty() ? "" : ", " + where.front(), how));
}

void StopReports::say_new() {
  for (; in_full_ < std::min(kMostInFull, reports_.size()); ++in_full_) {
    StopReport& report = reports_[in_full_];
    say(report);
    report.said = report.cores.size();
  }
}

void StopReports::finish() {
  say_new();
  for (StopReport& report : std::span(reports_).first(in_full_)) {
    if (report.said == report.cores.size()) continue;
    say_short(report, std::span(report.cores).subspan(report.said), ", as above");
    report.said = report.cores.size();
  }
  const auto others = std::span(reports_).subspan(in_full_);
  uint64_t cores = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    if (i < kMostShort)
      say_short(others[i], others[i].cores, "");
    else
      cores += others[i].cores.size();
  }
  if (cores != 0)
    line_(fmt::format("and {} more cores in {} other ways or places (all of them: --stats)", cores,
                      others.size() - kMostShort));
}

}  // namespace gpusim::host
