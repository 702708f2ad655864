#include "device_sim/simd/side_counts.h"

#include <algorithm>

#include "device_sim/simd/jit/code_cache.h"

namespace gpusim::simd {

namespace {

// f(lane, executions, tally of a block) for all that were counted.
template <class F>
void for_each_count(const Group& g, F f) {
  const SideCounts& sides = *side_counts(g);
  for (size_t place = 0; place < kSidePlaces; ++place) {
    const uint32_t* const counts = sides.of[place];
    if (std::all_of(counts, counts + kMaxLanes, [](uint32_t n) { return n == 0; })) continue;
    const BlockTally& tally = g.machine->block_tallies[g.machine->native->side_block(place)];
    for (uint32_t lane = 0; lane < kMaxLanes; ++lane)
      if (counts[lane] != 0) f(lane, counts[lane], tally);
  }
}

}  // namespace

void flush_sides(Group& g) {
  if (side_instructions(g) == 0) return;
  SideCounts& sides = *side_counts(g);
  for_each_count(g, [&](uint32_t lane, uint32_t times, const BlockTally& tally) {
    for (size_t c = 0; c < 16; ++c) g.lane_tally[lane][c] += uint64_t{times} * tally.counts[c];
  });
  g.has_tallies = true;
  g.flushed_instructions += sides.instructions;
  sides = {};
}

void add_sides(const Group& g, ClassCounts& sum) {
  if (side_instructions(g) == 0) return;
  for_each_count(g, [&](uint32_t, uint32_t times, const BlockTally& tally) {
    for (size_t c = 0; c < sum.size(); ++c) sum[c] += uint64_t{times} * tally.counts[c];
  });
}

}  // namespace gpusim::simd
