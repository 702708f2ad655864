#include "host/uninitialised/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "host/run/object_at.h"

namespace gpusim::host::uninitialised {
namespace {

constexpr size_t kMostListed = 20, kMostStackLines = 8;

std::string what_of(const ReportedFinding& f) {
  switch (f.use) {
    case Use::kBranch:
      return "a branch depends on a value";
    case Use::kJump:
      return "a jump goes to an address";
    case Use::kAddress:
      return "memory is accessed at an address";
    case Use::kSystemCall:
      return fmt::format("the system call {} is passed a value", f.call);
    case Use::kBytesOfSystemCall:
      return fmt::format("the system call {} is passed {} bytes, from byte {} on with some", f.call,
                         f.size_bytes, f.first_offset);
  }
  return {};
}
const char* name_of(Use use) {
  switch (use) {
    case Use::kBranch:
      return "branch";
    case Use::kJump:
      return "jump";
    case Use::kAddress:
      return "address";
    case Use::kSystemCall:
      return "argument";
    case Use::kBytesOfSystemCall:
      return "bytes";
  }
  return "";
}

std::string bytes_text(uint64_t n) { return fmt::format("{} byte{}", n, n == 1 ? "" : "s"); }

const CallFrame* frame_of_program(const std::vector<CallFrame>& frames) {
  const auto found =
      std::find_if(frames.begin(), frames.end(), [](const CallFrame& f) { return !f.is_library; });
  return found == frames.end() ? nullptr : &*found;
}

// The source line, or what comes closest.
std::string line_of(const CallFrame* frame, uint64_t pc) {
  if (!frame) return fmt::format("{:#x}", pc);
  return frame->function +
         (frame->source.empty() ? fmt::format("{:#x}", frame->pc) : " " + frame->source);
}

ReportedFinding::Source source_of(const CheckedMachine& machine, const Origin& origin,
                                  const Module& module, const MachineConfig& config,
                                  CallFrames& frames) {
  ReportedFinding::Source s{.core = origin.core,
                            .pc = origin.pc,
                            .address = origin.address,
                            .size_bytes = origin.size_bytes,
                            .object = object_at(module, config, origin.address),
                            .stack = frames.frames(origin.calls),
                            .is_heap = origin.is_heap,
                            .allocation = {}};
  if (origin.is_heap) {
    s.is_freed = origin.block.is_freed;
    s.block_bytes = origin.block.size_bytes;
    s.offset = origin.address - origin.block.begin;
    s.allocation = frames.frames(machine.heap().site(origin.block.site));
    s.object =
        fmt::format("a {}block of {}", s.is_freed ? "freed " : "", bytes_text(s.block_bytes));
  } else if (config.memory_model == MemoryModel::kPrivate &&
             origin.address - config.stack_base < config.stack_size) {
    s.object = fmt::format("the stack of core {}", origin.core);
  }
  return s;
}

std::string stack_lines(const std::vector<CallFrame>& stack, const std::string& before) {
  std::string text;
  for (const std::string& line : stack_text(stack, {}, kMostStackLines))
    text += before + line + "\n";
  return text;
}

std::string finding_text(const ReportedFinding& f) {
  std::string text = fmt::format("gpusim: {} that is not initialised: core {}, seen {} time{}:\n",
                                 what_of(f), f.core, f.count, f.count == 1 ? "" : "s");
  text += stack_lines(f.stack, "    ");
  if (!f.source) return text;
  const ReportedFinding::Source& s = *f.source;
  text += fmt::format("  loaded from {:#x}, {}, {}{}:\n", s.address, bytes_text(s.size_bytes),
                      s.is_heap ? fmt::format("at offset {} of ", s.offset) : "in ", s.object);
  text += stack_lines(s.stack, "    ");
  if (s.is_heap && !s.allocation.empty())
    text += "  the block was allocated\n" + stack_lines(s.allocation, "    ");
  return text;
}

nlohmann::ordered_json frames_json(const std::vector<CallFrame>& frames) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CallFrame& f : frames)
    list.push_back({{"function", f.function},
                    {"line", f.source},
                    {"pc", fmt::format("{:#x}", f.pc)},
                    {"in_library", f.is_library}});
  return list;
}

}  // namespace

UninitialisedReport make_report(const CheckedMachine& machine, const Module& module,
                                const MachineConfig& config, CallFrames& frames) {
  UninitialisedReport report;
  using Key = std::tuple<Use, std::string, std::string>;
  std::map<Key, size_t> number_of;
  for (const Finding& f : machine.findings()) {
    ReportedFinding r{.use = f.use,
                      .core = f.core,
                      .pc = f.pc,
                      .call = f.call,
                      .size_bytes = f.size_bytes,
                      .first_offset = f.first_offset,
                      .stack = frames.frames(f.calls),
                      .count = f.count,
                      .source = {}};
    if (const Origin* const origin = machine.origin(f.origin))
      r.source = source_of(machine, *origin, module, config, frames);
    const CallFrame* const use = frame_of_program(r.stack);
    const CallFrame* const load = r.source ? frame_of_program(r.source->stack) : nullptr;
    if (!use && !load) {
      report.in_libraries += f.count;
      continue;
    }
    // A library may use one value in many places.
    const bool is_in_library = use != &r.stack.front();
    const Key key{is_in_library ? Use::kBranch : f.use, use ? line_of(use, f.pc) : "",
                  line_of(load, r.source ? r.source->pc : 0)};
    const auto [place, is_new] = number_of.try_emplace(key, report.findings.size());
    if (is_new)
      report.findings.push_back(std::move(r));
    else
      report.findings[place->second].count += f.count;
  }
  return report;
}

std::string report_text(const UninitialisedReport& report) {
  std::string text;
  const auto& all = report.findings;
  for (size_t i = 0; i < std::min(all.size(), kMostListed); ++i) text += finding_text(all[i]);
  if (all.size() > kMostListed)
    text +=
        fmt::format("gpusim: and {} more; --stats FILE.json lists all\n", all.size() - kMostListed);
  const bool has_lines = std::any_of(all.begin(), all.end(), [](const ReportedFinding& f) {
    return std::any_of(f.stack.begin(), f.stack.end(),
                       [](const CallFrame& c) { return !c.source.empty(); });
  });
  if (!all.empty() && !has_lines)
    text += "gpusim: compile the program with -g to see source lines here\n";
  if (all.empty()) text += "gpusim: no use of uninitialised values was seen in this run\n";
  return text;
}

nlohmann::ordered_json report_json(const UninitialisedReport& report) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReportedFinding& f : report.findings) {
    const CallFrame* const use = frame_of_program(f.stack);
    nlohmann::ordered_json object{{"use", name_of(f.use)},
                                  {"core", f.core},
                                  {"count", f.count},
                                  {"function", use ? use->function : ""},
                                  {"line", use ? use->source : ""},
                                  {"pc", fmt::format("{:#x}", f.pc)},
                                  {"calls", frames_json(f.stack)}};
    if (!f.call.empty()) object["system_call"] = f.call;
    if (f.use == Use::kBytesOfSystemCall) {
      object["bytes"] = f.size_bytes;
      object["first_offset"] = f.first_offset;
    }
    if (f.source) {
      const ReportedFinding::Source& s = *f.source;
      const CallFrame* const load = frame_of_program(s.stack);
      nlohmann::ordered_json source{{"object", s.object},
                                    {"address", fmt::format("{:#x}", s.address)},
                                    {"bytes", s.size_bytes},
                                    {"core", s.core},
                                    {"function", load ? load->function : ""},
                                    {"line", load ? load->source : ""},
                                    {"pc", fmt::format("{:#x}", s.pc)},
                                    {"calls", frames_json(s.stack)}};
      if (s.is_heap)
        source["block"] = {{"bytes", s.block_bytes},
                           {"offset", s.offset},
                           {"freed", s.is_freed},
                           {"allocated", frames_json(s.allocation)}};
      object["loaded"] = std::move(source);
    }
    list.push_back(std::move(object));
  }
  return {{"found", std::move(list)}, {"in_libraries", report.in_libraries}};
}

}  // namespace gpusim::host::uninitialised
