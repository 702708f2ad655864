// Gives blocks their place in a module and turns guest addresses at their ends into micro-ops.
#pragma once
#include <functional>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/draft.h"

namespace gpusim {

/// Appends blocks, sorted by pc, to the module. Targets may be among them or in the module already;
/// any other becomes a stub that faults with kFetchAccess or kFetchAlignment at the target's
/// address. The slots of `blocks` must be the module's. Existing micro-ops stay as they are.
void link_blocks(std::vector<CodeBlock> blocks, Module& module);

/// First micro-op of the block that starts at pc, or kNoUop.
inline uint32_t find_block(const CodeMap& code, uint64_t pc) {
  const uint64_t unit = code.unit_of(pc);
  return code.is_aligned(pc) && unit < code.uop_at.size() ? code.uop_at[unit] : kNoUop;
}

}  // namespace gpusim
