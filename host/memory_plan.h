// Where a program's image, heap, mappings and stacks lie for either program model.
//
// shared:  linear zone = image, heap and mappings; windows = stacks, one per core.
// private: the window of each core holds everything from the lowest writable segment upwards:
//          data, heap, mappings, and the stack, which has addresses of its own where that is
//          possible. Read-only segments below are linear.
// Of a dynamic program, mappings that may hold code have the room between the image and the first
// program break: code must lie close together (kCodeLimit).
// The lowest page under each stack is never mapped: running into it is a fault, not a corruption.
#pragma once
#include <cstdint>

#include "device_sim/core/backend.h"
#include "device_sim/uir/module.h"

namespace gpusim::host {

struct PlanRequest {
  MemoryModel model = MemoryModel::kShared;
  uint32_t cores = 1;
  // Where they are a part of a machine's cores: the first one's number, and how many there are in
  // all. 0: these are all.
  uint32_t first_core = 0, all_cores = 0;
  uint64_t memory_size_bytes = 0;  // 0: automatic
  uint64_t stack_size_bytes = 0;   // 0: automatic
  bool memory_is_real = false;     // the backend allocates at once what it reserves (cuda)
};

struct MemoryPlan {
  MachineConfig config;                    // model, cores and zones
  uint32_t first_core = 0, all_cores = 0;  // as asked for
  uint64_t heap_start = 0;        // the first program break: page after the image, or later
  uint64_t code_room = 0;         // bytes before it, behind the image of a dynamic program
  uint64_t heap_limit = 0;        // end of the room for heap and mappings
  uint64_t stack_size_bytes = 0;  // mapped bytes below stack_top

  // Of the whole machine, which others may run a part of.
  uint32_t machine_cores() const { return all_cores != 0 ? all_cores : config.cores; }
  uint64_t stack_top(uint32_t core) const;
  uint64_t stack_bottom(uint32_t core) const { return stack_top(core) - stack_size_bytes; }
};

// Throws Error when it cannot fit.
MemoryPlan plan_memory(const Module& module, const PlanRequest& request);

inline constexpr uint64_t page_down(uint64_t a) { return a & ~uint64_t{0xfff}; }
inline constexpr uint64_t page_up(uint64_t a) { return page_down(a + 0xfff); }

}  // namespace gpusim::host
