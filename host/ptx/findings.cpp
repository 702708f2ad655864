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

bool explains(const Finding& finding, const Fault& fault) {
  if (finding.kernel != fault.kernel || fault.line == 0 || finding.line != fault.line) return false;
  switch (finding.kind) {
    case FindingKind::kOutOfBounds:
    case FindingKind::kUseAfterFree:
      return fault.reason == Fault::Reason::kAddress;
    case FindingKind::kMisaligned:
      return fault.reason == Fault::Reason::kMisaligned;
    case FindingKind::kDeadlock:
      return fault.reason == Fault::Reason::kDeadlock;
    default:
      return false;
  }
}

std::string brief_text(const Fault& fault) {
  const Dim3 &b = fault.block, &t = fault.thread;
  return fmt::format("kernel '{}' ended there with a fault: block ({},{},{}), thread ({},{},{}){}",
                     fault.kernel, b.x, b.y, b.z, t.x, t.y, t.z,
                     fault.address != 0 ? fmt::format(", address {:#x}", fault.address) : "");
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
