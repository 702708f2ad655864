// What a group's accesses to memory cost beyond its steps, where neighbouring lanes access places
// that lie apart: rows of a matrix that are dealt out to threads, say. A step then costs what its
// lanes' lines cost, and a core alone goes through one line after the other. By values alone, not
// by how rows hold them.
#pragma once
#include <cstdint>

#include "device_sim/simd/group.h"

namespace gpusim::simd {

struct AccessCost {
  uint64_t steps = 0;  // micro-ops that were looked at
  uint64_t cost = 0;   // of their accesses, in instructions of a core alone
  AccessCost& operator+=(const AccessCost& other) {
    steps += other.steps;
    cost += other.cost;
    return *this;
  }
};

// Of the block that the group's first lanes come to next, by some of them. Loads read memory,
// nothing is changed.
AccessCost next_access_cost(const Group& g);

}  // namespace gpusim::simd
