// Groups of one lane in native code (device_sim/native).
#pragma once
#include "device_sim/simd/group.h"

namespace gpusim::simd {

// Runs the lane from the micro-op on. Returns where it goes on, or kNoUop if there is no code that
// suits its state.
uint32_t run_alone(Group& g, uint32_t uop);
// After a turn of the group: counts what it executed there.
void settle_alone(Group& g);

}  // namespace gpusim::simd
