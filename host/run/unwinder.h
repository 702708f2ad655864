// Who called whom on a core: from its registers and its stack, both of which may be nonsense.
//
// A step up uses the call frame information of the program's ELF file (.eh_frame, .debug_frame), or
// what the function's code does (caller_rule.h), or the link register of a leaf and the chain of
// frame pointers. Each read is checked, stacks only go up, and there are at most kMostCalls steps.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"
#include "host/run/caller_rule.h"
#include "host/run/source_lines.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {

// A place in the program that a core has yet to come back to, or where it is.
struct CallPlace {
  uint64_t pc = 0;
  bool is_return = false;        // pc is behind the instruction that counts: a call, as a rule
  bool was_interrupted = false;  // the place before this one is in a signal handler
  bool operator==(const CallPlace&) const = default;
  // An address of the instruction that counts.
  uint64_t inside() const { return pc - (is_return ? 1 : 0); }
};

struct CallStack {
  std::vector<CallPlace> places;  // the innermost first
  // An address to which the outermost place would return, but where there is no code.
  std::optional<uint64_t> bad_return;
  bool is_cut = false;  // there may be more
  bool operator==(const CallStack&) const = default;
};

class Unwinder {
 public:
  static constexpr size_t kMostCalls = 64;

  // `debug_info`: may be null; else it has to live as long.
  Unwinder(const Module& module, Kernel& kernel, DebugInfo* debug_info);

  // Of a core that has stopped at `place`, or of a thread without one.
  CallStack stack(uint32_t core, CallPlace place);

 private:
  class Registers;

  const CallerRule& rule_at(uint64_t pc);
  CallerRule find_rule(uint64_t pc);
  // The caller's registers; nothing if they cannot be found so.
  std::optional<Registers> step_by_rule(const Registers& callee, uint64_t pc, bool is_innermost);
  std::optional<Registers> step_by_frame_pointer(const Registers& callee, uint64_t pc,
                                                 bool is_innermost) const;
  // It ends there, or there is code.
  bool returns_somewhere(const Registers& caller) const;
  SignalFrame::CallerRegisters frame_of(const Registers& caller) const;
  bool is_code(uint64_t address) const;

  const Module& module_;
  Kernel& kernel_;
  DebugInfo* debug_info_;
  const gpusim::CallFrames* frames_ = nullptr;  // the ISA's row
  size_t word_bytes_ = 8;
  std::vector<int> slots_;  // the module's, by DWARF's number
  std::unordered_map<uint64_t, CallerRule> rules_;
  size_t budget_ = 1'000'000;  // instructions of functions whose code is followed: half a second
};

}  // namespace gpusim::host
