// What the text of regions (regions.h) is made of.
#pragma once
#include "device_sim/core/execute.h"
#include "device_sim/cuda/region_view.cuh"

namespace gpusim::cuda {

// Slots whose numbers are known where they are used: registers.
template <uint32_t count>
struct LocalSlots {
  uint64_t values[count];
  __device__ __forceinline__ uint64_t get(Slot s) const { return values[s]; }
  __device__ __forceinline__ void set(Slot s, uint64_t value) { values[s] = value; }
};

// The micro-op `u`, at `place`. One that faults has done nothing, and is left to the interpreter.
#define GPUSIM_STEP(op, place)                                           \
  if (execute_row<Op::op>(u, s, memory, core, why) == Outcome::kFault) { \
    at = place;                                                          \
    goto leave;                                                          \
  }
#define GPUSIM_IS_TAKEN(op) execute_row<Op::op>(u, s, memory, core, why) == Outcome::kTaken

}  // namespace gpusim::cuda
