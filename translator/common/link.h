// Gives blocks their place in a module and turns guest addresses at their ends into micro-ops.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/draft.h"

namespace gpusim {

/// Targets that hold code which is translated when a core first comes there. Until then they have
/// stubs: blocks without instructions that jump to the guest address, where no block starts.
struct OpenTargets {
  struct Target {
    uint32_t stub;
    std::vector<uint32_t> ends;  // of blocks, that lead to the stub
  };
  Slot address = 0;        // a temporary, as the module numbers it
  bool takes_all = false;  // those that hold no code, too: it may come there
  std::unordered_map<uint64_t, Target> targets;
};

/// Where cores stop for a debugger: ways to a block there, its place in the code map among them,
/// lead to a block without instructions that only traps (Fault::kBreakpoint).
struct Breakpoints {
  std::unordered_set<uint64_t> addresses;
  std::unordered_map<uint64_t, uint32_t> behind;  // the blocks themselves: their first micro-ops
};

/// Appends blocks, sorted by pc, to the module. Targets may be among them or in the module already.
/// Others that hold code go to `open`, if it is given; any other becomes a stub that faults with
/// kFetchAccess or kFetchAlignment at the target's address. The slots of `blocks` must be the
/// module's. Existing micro-ops stay as they are, but ends that led to a stub lead to its block
/// once that is there.
void link_blocks(std::vector<CodeBlock> blocks, Module& module, OpenTargets* open = nullptr,
                 Breakpoints* breakpoints = nullptr);

/// First micro-op of the block that starts at pc, or kNoUop.
inline uint32_t find_block(const CodeMap& code, uint64_t pc) {
  const uint64_t unit = code.unit_of(pc);
  return code.is_aligned(pc) && unit < code.uop_at.size() ? code.uop_at[unit] : kNoUop;
}

}  // namespace gpusim
