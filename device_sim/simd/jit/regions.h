// Regions: a few short blocks between a branch at which lanes part and the place where they meet
// again, as compilers make them of conditional expressions. With a conditional move there would be
// no branch. Native code executes all of the blocks for all lanes and keeps what each lane would
// have computed, so that lanes need not take turns.
#pragma once
#include <vector>

#include "device_sim/simd/jit/trace.h"

namespace gpusim::simd {

struct Region {
  std::vector<Step> steps;        // of its blocks, in the order in which lanes would come to them
  uint32_t taken = 0, other = 0;  // where the branch leads
  uint32_t join = 0;
};

// The region behind the branch at micro-op `branch`; without steps if there is none.
Region region_behind(const Machine& machine, uint32_t branch);
// Notes the forms of the values that a region's steps find, with the group at its branch.
void note_forms(const Group& g, Region& region);

}  // namespace gpusim::simd
