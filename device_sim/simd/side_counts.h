// How often each lane executed blocks that native code executes for some lanes only: between a
// branch at which they part and the place where they meet again (jit/regions.h). Added to the
// lanes' tallies when those are looked at, as epochs are.
#pragma once
#include "device_sim/simd/group.h"

namespace gpusim::simd {

// Which block has which place, CodeCache::side_block() tells.
inline constexpr size_t kSidePlaces = 8;

struct SideCounts {
  alignas(64) uint32_t of[kSidePlaces][kMaxLanes];
  uint64_t instructions;  // that these executions are, over all lanes
};
inline constexpr size_t kSideCountsOffset = kMaxLanes * sizeof(ClassCounts);  // from lane_tally

// What a group's tallies occupy. Behind those of kMaxLanes lanes lie the group's SideCounts.
constexpr size_t tally_bytes(uint32_t width) {
  return width * sizeof(ClassCounts) + (width == kMaxLanes ? sizeof(SideCounts) : 0);
}
// Null: there are none, as native code for such groups has no sides.
inline SideCounts* side_counts(const Group& g) {
  return g.width == kMaxLanes ? reinterpret_cast<SideCounts*>(g.lane_tally + kMaxLanes) : nullptr;
}
inline uint64_t side_instructions(const Group& g) {
  const SideCounts* const sides = side_counts(g);
  return sides == nullptr ? 0 : sides->instructions;
}
// Adds what is there to the group's lanes.
void flush_sides(Group& g);
// Adds it up over all lanes.
void add_sides(const Group& g, ClassCounts& sum);

}  // namespace gpusim::simd
