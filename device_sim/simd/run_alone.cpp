#include "device_sim/simd/run_alone.h"

#include <algorithm>

#include "device_sim/simd/jit/code_cache.h"

namespace gpusim::simd {

uint32_t run_alone(Group& g, uint32_t uop) {
  native::Engine* const engine = g.machine->native->alone();
  if (engine == nullptr || g.budget <= 0) return kNoUop;
  native::Frame frame;
  for (uint32_t s = 0; s < g.slot_count; ++s) frame.slots[s] = g.get_lane(static_cast<Slot>(s), 0);
  engine->prepare(frame);
  frame.budget = g.budget;
  frame.depth = g.depth;
  frame.block_counts = g.block_counts;
  frame.core = g.core(0);
  if (!engine->run(frame, uop)) return kNoUop;
  std::copy_n(frame.slots, g.slot_count, g.base);
  std::fill_n(g.kind, g.slot_count, uint8_t{kUniform});
  for (size_t c = 0; c < 16; ++c) g.epoch->counts[c] += frame.tally[c];
  g.workspace->alone += static_cast<uint64_t>(g.budget - frame.budget);
  g.turns.patience -= g.budget - frame.budget;
  g.budget = frame.budget;
  g.depth = frame.depth;
  return frame.next;
}

}  // namespace gpusim::simd
