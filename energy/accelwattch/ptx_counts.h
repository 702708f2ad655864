// Counters of the simulator that the software variant was tuned with, made of the opcodes of PTX.
#pragma once
#include "energy/accelwattch/model.h"
#include "energy/activity.h"

namespace gpusim::accelwattch {

/// The counter of thread instructions that an opcode is counted by; empty: none.
std::string_view ptx_counter(std::string_view opcode);

/// Operands that an instruction reads and writes, immediates included, predicates not.
struct PtxOperands {
  int reads = 0, writes = 0;
};
PtxOperands ptx_operands(std::string_view opcode);

/// Sets k.counts of the kernel's opcodes. Sectors, and what caches served, are counts where the
/// kernel was profiled; else an access of a warp touches four sectors that the L1 cache has.
void set_ptx_counts(KernelActivity& k, const ChipModel& chip, const energy::ActivityPart& kernel);

}  // namespace gpusim::accelwattch
