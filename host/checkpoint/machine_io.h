// Cores, registers and memory of a machine in a checkpoint.
#pragma once
#include "device_sim/core/machine_state.h"
#include "host/checkpoint/archive.h"
#include "host/memory_plan.h"

namespace gpusim::host {

// Each is one section. save_cores returns which cores are runnable.
std::vector<bool> save_cores(ChunkWriter& file, const Module& module, Backend& backend, MachineState& state);
void save_rights(ChunkWriter& file, const MemoryPlan& plan, Backend& backend);
void save_memory(ChunkWriter& file, MachineState& state);

// After configure(), in this order: rights, memory, cores. Returns which cores are runnable.
void load_rights(ChunkReader& file, const MemoryPlan& plan, Backend& backend);
void load_memory(ChunkReader& file, MachineState& state);
std::vector<bool> load_cores(ChunkReader& file, const Module& module, const MemoryPlan& plan,
                             MachineState& state, bool same_machine);

}  // namespace gpusim::host
