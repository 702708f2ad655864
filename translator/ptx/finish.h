// From blocks of micro-ops to a module: what nobody reads goes, slots are renumbered, targets
// found.
#pragma once
#include <map>
#include <vector>

#include "translator/common/draft.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/notes.h"

namespace gpusim::ptx {

/// Fills in the kernel's module and slots. `units`: of code addresses, of which the kernel begins
/// at `entry`. `notes`: see notes.h.
void finish(std::vector<CodeBlock> blocks, const std::map<uint64_t, Slot>& constants,
            uint32_t units, uint64_t entry, Notes notes, KernelCode& kernel);

}  // namespace gpusim::ptx
