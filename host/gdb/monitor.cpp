// Commands behind GDB's `monitor`: what the simulator knows and a debugger does not.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "host/gdb/session.h"
#include "host/run/deadlock.h"

namespace gpusim::host::gdb {
namespace {

constexpr const char* kHelp =
    "monitor cores            where cores are, and what they wait for\n"
    "monitor groups           the same by groups of cores that run in lockstep\n"
    "monitor waits            which cores wait, where and for what\n"
    "monitor threads          threads that have no core: what they wait for, and who called that\n"
    "monitor tallies [CORE]   instructions so far, by class: of all cores or of one\n"
    "monitor time [CORE]      simulated time so far (gpusim run --simulated-time)\n"
    "monitor help             this\n";

std::optional<uint32_t> core_number(const std::string& text, uint32_t cores) {
  uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value >= cores) return std::nullopt;
  return value;
}

std::string tallies_text(const std::string& whose, const ClassCounts& classes) {
  uint64_t all = 0;
  for (int c = 0; c < kInsnClassCount; ++c) all += classes[static_cast<size_t>(c)];
  std::string text = fmt::format("{}: {} instructions\n", whose, all);
  for (size_t c = 0; c < kInsnClassCount; ++c)
    if (classes[c] != 0) text += fmt::format("  {:<20} {}\n", kInsnClassNames[c], classes[c]);
  return text;
}

}  // namespace

// When none can go on.
std::string Session::deadlock_text() {
  const bool all_may_run = resume_.others == Action::kGo;
  if (!all_may_run) return places_text(0, run_.cores(), "  ", /*waiting=*/true);
  std::string text;
  for (const std::string& line : sources_.control.waits()) text += line + "\n";
  return text;
}

std::string Session::places_text(uint32_t begin, uint32_t end, const char* indent, bool waiting) {
  std::map<std::string, std::vector<uint32_t>> places;
  for (uint32_t c = begin; c < end; ++c) {
    if (!sources_.kernel.is_alive(c)) continue;
    const std::string state = run_.state(c);
    if (waiting && state == "runs") continue;
    const std::string place = symbolize(sources_.translator.module(), run_.pc(c));
    places[fmt::format("{}: {}", place, state)].push_back(c);
  }
  std::vector<std::pair<std::string, std::vector<uint32_t>>> list(places.begin(), places.end());
  std::ranges::stable_sort(
      list, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [place, cores] : list)
    text += fmt::format("{}{} at {}\n", indent, host::thread_list(sources_.kernel, cores), place);
  return text;
}

std::string Session::groups_text() {
  const uint32_t width = std::max(1u, sources_.plan.config.group_width);
  std::string text = fmt::format("{} cores, groups of {}\n", run_.cores(), width);
  for (uint32_t begin = 0; begin < run_.cores(); begin += width) {
    const uint32_t end = std::min(run_.cores(), begin + width);
    const std::string places = places_text(begin, end, "  ");
    if (!places.empty()) text += fmt::format("group {}:\n{}", begin / width, places);
  }
  return text;
}

std::string Session::monitor(const std::string& command) {
  std::istringstream words(command);
  std::string verb, argument, more;
  words >> verb >> argument >> more;
  const bool takes_core = verb == "tallies" || verb == "time";
  if (!more.empty() || (!argument.empty() && !takes_core))
    return fmt::format("{}: too many words; monitor help lists what there is\n", verb);
  const std::optional<uint32_t> one =
      argument.empty() ? std::nullopt : core_number(argument, run_.cores());
  const uint32_t core_asked = one.value_or(0);
  if (!argument.empty() && !one)
    return fmt::format("{} {}: expected a core from 0 to {}\n", verb, argument, run_.cores() - 1);

  if (verb == "help" || verb.empty()) return kHelp;
  const uint32_t all = sources_.kernel.thread_numbers();
  if (verb == "waits") {
    const std::string waits = places_text(0, all, "", /*waiting=*/true);
    return waits.empty() ? "no core waits\n" : waits;
  }
  if (verb == "cores") return places_text(0, all, "");
  if (verb == "threads") {
    std::string text;
    for (const std::string& line : sources_.control.threads_without_core()) text += line + "\n";
    return text.empty() ? "every thread has a core\n" : text;
  }
  if (verb == "groups") return groups_text();
  const Tallies& tallies = sources_.control.tallies();
  if (verb == "tallies") {
    if (one)
      return tallies_text(fmt::format("core {}", core_asked),
                          tallies.of_core(sources_.backend, core_asked));
    return tallies_text("all cores",
                        tallies.total(sources_.translator.module(), sources_.backend).classes);
  }
  if (verb == "time") {
    if (!sources_.cycles) return "simulated time is not on: gpusim run --simulated-time\n";
    if (one)
      return fmt::format("core {}: {:.0f} cycles\n", core_asked, sources_.cycles(core_asked));
    double most = 0;
    for (uint32_t c = 0; c < run_.cores(); ++c) most = std::max(most, sources_.cycles(c));
    return fmt::format("{:.0f} cycles\n", most);
  }
  return fmt::format("{}: no such command; monitor help lists what there is\n", verb);
}

}  // namespace gpusim::host::gdb
