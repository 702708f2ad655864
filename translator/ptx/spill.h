// Registers that do not fit: they go to the thread's local memory.
#pragma once
#include <string>

#include "translator/ptx/allocate.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

/// The variable in local memory that the kernel's spilled registers are in.
inline const std::string kSpillVariable = "@spill";

struct SpilledAllocation {
  Allocation allocation;
  uint32_t spill_bytes = 0;  // of kSpillVariable
};

/// Allocates so that at most `most` slots are needed: spilled registers are loaded before the
/// instructions that read them and stored behind those that write them, by instructions that do not
/// count. The allocation needs more if nothing is left to spill.
SpilledAllocation allocate_and_spill(Function& f, int most);

}  // namespace gpusim::ptx
