#include "device_sim/simd/run_alone.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "device_sim/simd/jit/code_cache.h"

namespace gpusim::simd {

namespace {

// Turns are short where cores share work: to look at each slot's kind took as long as some hundred
// instructions.
bool are_uniform(const Group& g) {
  static constexpr std::array<uint8_t, sizeof g.kind> kAllUniform = {};
  static_assert(kUniform == 0);
  return std::memcmp(g.kind, kAllUniform.data(), g.slot_count) == 0;
}

}  // namespace

uint32_t run_alone(Group& g, uint32_t uop) {
  native::Engine* const engine = g.machine->native->alone();
  if (engine == nullptr || g.budget <= 0) return kNoUop;
  engine->prepare(g.workspace->frame);
  native::Frame& frame = g.workspace->frame.frame();
  const bool all_uniform = are_uniform(g);
  if (all_uniform) {
    std::memcpy(frame.slots, g.base, g.slot_count * sizeof g.base[0]);
  } else {
    for (uint32_t s = 0; s < g.slot_count; ++s)
      frame.slots[s] = g.get_lane(static_cast<Slot>(s), 0);
  }
  frame.budget = g.budget;
  frame.depth = g.depth;
  frame.block_counts = g.block_counts;
  std::fill(std::begin(frame.tally), std::end(frame.tally), 0);
  frame.core = g.core(0);
  if (g.machine->memory.class_ticks != nullptr) frame.clock = clock_of_lane(g, 0);
  if (!engine->run(frame, uop)) return kNoUop;
  g.workspace->classes = g.epoch->counts;
  std::memcpy(g.base, frame.slots, g.slot_count * sizeof g.base[0]);
  if (!all_uniform) std::fill_n(g.kind, g.slot_count, uint8_t{kUniform});
  for (size_t c = 0; c < 16; ++c) g.epoch->counts[c] += frame.tally[c];
  g.workspace->alone += static_cast<uint64_t>(g.budget - frame.budget);
  g.turns.patience -= g.budget - frame.budget;
  g.budget = frame.budget;
  g.depth = frame.depth;
  return frame.next;
}

void settle_alone(Group& g) {
  if (g.workspace->classes == nullptr) return;
  g.machine->native->alone()->settle(g.workspace->frame, g.block_counts,
                                     std::exchange(g.workspace->classes, nullptr));
}

}  // namespace gpusim::simd
