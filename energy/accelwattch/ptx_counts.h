// Counters of the simulator that the software variant was tuned with, made of the opcodes of PTX.
#pragma once
#include "energy/accelwattch/model.h"
#include "energy/activity.h"

namespace gpusim::accelwattch {

/// The counter of thread instructions that an opcode is counted by; empty: none.
std::string_view ptx_counter(std::string_view opcode);

/// Sets k.counts, for k.lanes active lanes per warp.
void set_ptx_counts(KernelActivity& k, const ChipModel& chip, const energy::OpcodeCounts& opcodes);

}  // namespace gpusim::accelwattch
