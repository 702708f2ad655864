// What `--check` found, for its readers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/ptx/check.h"

namespace gpusim::ptx {

std::vector<Finding> Findings::take() {
  number_of_.clear();
  return std::move(list_);
}

Checks parse_checks(const std::string& option, const std::string& text) {
  Checks c;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (word == "all")
      c = {true, true, true, true};
    else if (word == "memory")
      c.memory = true;
    else if (word == "races")
      c.races = true;
    else if (word == "barriers")
      c.barriers = true;
    else if (word == "uninitialised")
      c.uninitialised = true;
    else
      throw Error(
          fmt::format("{} {}: of a kernel, expected all, or some of memory, races, "
                      "barriers, uninitialised, with commas between them",
                      option, text));
  }
  return c;
}

const char* kind_text(FindingKind kind) {
  switch (kind) {
    case FindingKind::kOutOfBounds:
      return "out of bounds";
    case FindingKind::kUseAfterFree:
      return "use after free";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kUninitialised:
      return "uninitialised";
    case FindingKind::kRace:
      return "race";
    case FindingKind::kBarrier:
      return "divergent barrier";
    case FindingKind::kDeadlock:
      return "deadlock";
  }
  return "";
}

nlohmann::ordered_json finding_json(const Finding& f) {
  return {{"kind", kind_text(f.kind)},
          {"kernel", f.kernel},
          {"block", {f.block.x, f.block.y, f.block.z}},
          {"thread", {f.thread.x, f.thread.y, f.thread.z}},
          {"line", f.line},
          {"source", f.source},
          {"address", f.address},
          {"count", f.count},
          {"text", f.text}};
}

}  // namespace gpusim::ptx
