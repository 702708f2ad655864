// How scattered the accesses to memory are of lanes that run in lockstep.
#pragma once
#include <cstdint>

#include "device_sim/simd/group.h"
#include "device_sim/uir/module.h"

namespace gpusim::simd {

// Of the block where the group goes on: lanes' accesses to places of their own, and instructions.
struct ScatteredUse {
  uint64_t accesses = 0, instructions = 0;
};

// An estimate: address registers are looked at as they are where the block begins. It depends on
// guest state only, not on what has native code, so that it repeats after a checkpoint.
ScatteredUse scattered_use(const Group& group, const Module& module);

}  // namespace gpusim::simd
