#include "device_sim/simd/scattered.h"

#include <algorithm>
#include <bit>

#include "device_sim/simd/jit/step_info.h"

namespace gpusim::simd {
namespace {

// Whether the lanes' values are one, or lie so close together that accesses share cache lines.
bool is_regular(const Group& g, Slot slot, uint64_t lanes) {
  constexpr uint64_t kClose = 16;  // bytes from one lane to the next
  const auto lane_of = [](uint64_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); };
  const uint32_t first = lane_of(lanes);
  const uint64_t rest = lanes & (lanes - 1);
  if (rest == 0) return true;
  const uint64_t base = g.get_lane(slot, first);
  const auto distance = static_cast<int64_t>(g.get_lane(slot, lane_of(rest)) - base);
  const auto stride = static_cast<uint64_t>(distance / int64_t{lane_of(rest) - first});
  if (stride + kClose > 2 * kClose) return false;  // it may be negative
  bool is_even = true;
  for_each_lane(rest, [&](uint32_t lane) {
    is_even = is_even && g.get_lane(slot, lane) == base + stride * (lane - first);
  });
  return is_even;
}

// The largest set of lanes at one place.
uint64_t most_together(const Group& g) {
  uint64_t most = 0;
  for (uint64_t rest = g.runnable; rest != 0;) {
    const uint64_t key = g.key(static_cast<uint32_t>(std::countr_zero(rest)));
    uint64_t same = 0;
    for_each_lane(rest, [&](uint32_t lane) {
      if (g.key(lane) == key) same |= uint64_t{1} << lane;
    });
    if (std::popcount(same) > std::popcount(most)) most = same;
    rest &= ~same;
  }
  return most;
}

}  // namespace

ScatteredUse scattered_use(const Group& g, const Module& module) {
  ScatteredUse use;
  const uint64_t lanes = most_together(g);
  if (lanes == 0) return use;
  const uint64_t key = g.key(static_cast<uint32_t>(std::countr_zero(lanes)));
  const uint32_t uop = key_pc(*g.machine, key);
  const auto next =
      std::upper_bound(module.blocks.begin(), module.blocks.end(), uop,
                       [](uint32_t at, const Block& block) { return at < block.first_uop; });
  if (next == module.blocks.begin()) return use;
  const Block& block = *(next - 1);
  use.instructions = block.insn_count;
  for (uint32_t u = block.first_uop; u < block.first_uop + block.uop_count; ++u) {
    const Uop& op = module.uops[u];
    const Shape shape = op_info(op.op).shape;
    if (!is_load(shape) && !is_store(shape)) continue;
    const bool has_index = shape_info(shape).b.reads != 0;
    if (!is_regular(g, op.a, lanes) || (has_index && !is_regular(g, op.b, lanes)))
      use.accesses += static_cast<uint64_t>(std::popcount(lanes));
  }
  return use;
}

}  // namespace gpusim::simd
