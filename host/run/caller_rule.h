// Where a function's caller has its registers while the function is at one address.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "device_sim/uir/module.h"
#include "host/run/source_lines.h"

namespace gpusim::host {

// Registers are numbers of DWARF (translator/common/guest_isa.h, CallFrames). The canonical frame
// address (CFA) is the stack pointer of the caller, as a rule.
struct CallerRule {
  struct Saved {
    enum class Where : uint8_t { kAtCfa, kIsCfa, kRegister, kLost };
    int reg = 0;
    Where where = Where::kLost;
    int64_t value = 0;  // kAtCfa: the word at CFA + value; kIsCfa: CFA + value
    bool operator==(const Saved&) const = default;
  };
  bool is_known = false;
  bool is_from_code = false;
  int cfa_register = 0;
  int64_t cfa_offset = 0;
  std::vector<Saved> saved;  // other registers are the caller's
  bool operator==(const CallerRule&) const = default;
};

/// The rule at `pc` of call frame information, if there is one; `registers`: their number.
CallerRule rule_from_debug_info(DebugInfo& debug_info, size_t registers, uint64_t pc);

/// The rule at `pc` of the function whose code is [begin, end), where no call frame information
/// tells. Its instructions are followed from the first one on all ways that lead on within it, with
/// what each register holds of constants, the CFA and the caller's registers. Not known if no way
/// leads to pc, or no register holds the CFA there. It relies on what compilers make: two ways to
/// an instruction agree on the frame, calls keep the stack pointer and what callees save, and no
/// other pointer leads to where registers are saved.
/// `budget`: so many instructions may still be followed.
CallerRule rule_from_code(const Module& module, uint64_t begin, uint64_t end, uint64_t pc,
                          size_t& budget);

}  // namespace gpusim::host
