// What `gpusim run --profile` shows: functions, inlined functions, source lines.
#pragma once
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "energy/target.h"
#include "host/output_file.h"
#include "host/run/call_tree.h"
#include "host/run/profile.h"
#include "host/run/profile_frames.h"
#include "host/run/timeline_cycles.h"

namespace gpusim::host::chip {
struct ChipReport;
}

namespace gpusim::host {

struct ProfileRow {
  std::string name, file;  // a function, or a line's file; "" where it is not known
  int line = 0;
  PlaceUse use;
};

// A source line as it was compiled into a function.
struct ProfilePlace {
  std::string function, function_file;  // as compiled
  std::string file;                     // of the line: another one where something was inlined
  int line = 0;
  auto operator<=>(const ProfilePlace&) const = default;
};

// Functions as numbers of ProfileReport::names, the outermost first.
struct ProfileStack {
  uint32_t core = CallStacks::kAllCores;
  std::vector<uint32_t> functions;
  auto operator<=>(const ProfileStack&) const = default;
};

// Calls of a function from a source line of another one, both as compiled.
struct ProfileCall {
  std::string caller, caller_file;
  std::string file;  // of the line; "" with line 0 where it is not known
  int line = 0;
  std::string callee, callee_file;
  auto operator<=>(const ProfileCall&) const = default;
};
struct CallUse {
  uint64_t count = 0;
  // With all that was called from there; of calls in a recursion only the outermost has it, so that
  // what a function took with all that it called is the sum over its callers.
  PlaceUse inclusive;
};

// Each list adds up to `total`; most cycles first.
struct ProfileReport {
  std::string program, backend;
  uint32_t cores = 0;
  CycleTable table;
  bool lanes_are_known = false;
  LaneSummary lanes;
  PlaceUse total;
  std::vector<ProfileRow> functions;  // as compiled: what was inlined counts for its callers
  std::vector<ProfileRow> inlined;    // the innermost function that the source text names
  std::vector<ProfileRow> lines;      // of the innermost function
  std::vector<std::string> names;     // in order
  std::map<ProfileStack, PlaceUse> stacks;
  bool has_callers = false;  // in the stacks; else only functions that were inlined
  std::map<ProfilePlace, PlaceUse> places;
  std::map<ProfileCall, CallUse> calls;  // none where nobody followed calls
};

struct ProfileInput {
  std::string program, backend;
  uint32_t cores = 0;
  CycleTable table;
  LaneSummary lanes;
  std::optional<CallStacks> calls;  // none: nobody followed calls
};
ProfileReport make_profile_report(const Module& module, const ProfilePlaces& places,
                                  const InlineFrames& frames, ProfileInput input);

std::string profile_text(const ProfileReport& report);
nlohmann::ordered_json profile_json(const ProfileReport& report);
// "main;sum 123" per line: the input of flame graph programs. With cores apart "core 0;main;sum
// 123".
std::string profile_folded(const ProfileReport& report);
// For KCachegrind and callgrind_annotate.
std::string profile_callgrind(const ProfileReport& report);
// The stacks of all cores as a picture: a function stands on its caller, as wide as its cycles.
std::string flame_graph_svg(const ProfileReport& report);
// A page with tables and the source text beside what its lines took.
// `chip`: what it did on that, or null.
std::string profile_html(const ProfileReport& report, const chip::ChipReport* chip = nullptr);

// Where --profile goes, by the ends of the names: .json, .html, .folded, .callgrind (or a
// beginning: callgrind.out...). Throws Error for others.
struct ProfileFiles {
  std::vector<OutputFile> list;
  // Whether one of them is there to show stacks.
  bool show_stacks() const;
};
ProfileFiles parse_profile_files(const std::string& text);
void write_profile(const ProfileFiles& files, const ProfileReport& report,
                   const chip::ChipReport* chip);

}  // namespace gpusim::host
