// The profile as Valgrind's callgrind writes it (valgrind manual, "Callgrind Format
// Specification"): for KCachegrind and callgrind_annotate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "host/run/profile_report.h"

namespace gpusim::host {
namespace {

// Names stand alone on their lines.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.empty() ? "???" : text;  // as callgrind names what it does not know
}

uint64_t rounded(double cycles) { return static_cast<uint64_t>(std::llround(cycles)); }

std::string costs(const ProfileReport& r, const PlaceUse& u) {
  std::string text =
      fmt::format("{} {} {}", u.instructions(), rounded(r.table.of(u.classes)), u.in_vain);
  if (r.lanes_are_known) text += fmt::format(" {}", u.lanes - std::min(u.lanes, u.instructions()));
  return text;
}

}  // namespace

std::string profile_callgrind(const ProfileReport& r) {
  std::string out = fmt::format(
      "# callgrind format\nversion: 1\ncreator: gpusim\ncmd: {}\ndesc: Cores: {}\ndesc: Cycles: "
      "{}\n"
      "positions: line\n"
      "event: Ir : Guest instructions\nevent: Cycles : Cycles on the timing's target\n"
      "event: Vain : Instructions of looks in vain at what others shall change\n",
      one_line(r.program), r.cores, one_line(r.table.name));
  if (r.lanes_are_known)
    out += "event: Diverged : Lanes that stood while others of their group ran\n";
  out += fmt::format("events: Ir Cycles Vain{}\n", r.lanes_are_known ? " Diverged" : "");

  // By file and function: some have only calls, of those that began.
  struct Rows {
    std::vector<std::pair<const ProfilePlace*, const PlaceUse*>> places;
    std::vector<std::pair<const ProfileCall*, const CallUse*>> calls;
  };
  std::map<std::pair<std::string, std::string>, Rows> functions;
  for (const auto& [place, use] : r.places)
    if (use.instructions() != 0)
      functions[{place.function, place.function_file}].places.emplace_back(&place, &use);
  for (const auto& [call, use] : r.calls)
    functions[{call.caller, call.caller_file}].calls.emplace_back(&call, &use);

  PlaceUse sum;
  uint64_t cycles = 0;
  for (const auto& [key, rows] : functions) {
    const std::string &function = key.first, &function_file = key.second;
    out += fmt::format("\nfl={}\nfn={}\n", one_line(function_file), one_line(function));
    std::string file = function_file;  // that lines belong to
    const auto go_to = [&](const std::string& other) {
      // Of a function that was inlined; "fe" where it ends.
      if (other != file)
        out += fmt::format("{}={}\n", other == function_file ? "fe" : "fi", one_line(other));
      file = other;
    };
    for (const auto& [place, use] : rows.places) {
      go_to(place->file);
      out += fmt::format("{} {}\n", place->line, costs(r, *use));
      sum += *use;
      cycles += rounded(r.table.of(use->classes));
    }
    for (const auto& [call, use] : rows.calls) {
      go_to(call->line == 0 ? function_file : call->file);
      out += fmt::format("cfi={}\ncfn={}\ncalls={} 0\n{} {}\n", one_line(call->callee_file),
                         one_line(call->callee), use->count, call->line, costs(r, use->inclusive));
    }
  }
  out += fmt::format("\ntotals: {} {} {}", sum.instructions(), cycles, sum.in_vain);
  if (r.lanes_are_known)
    out += fmt::format(" {}", sum.lanes - std::min(sum.lanes, sum.instructions()));
  return out + "\n";
}

}  // namespace gpusim::host
