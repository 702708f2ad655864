#include "device_sim/simd/grouped_threads.h"

namespace gpusim::simd {

void GroupedThreads::reset(uint32_t cores, uint32_t cta_threads, uint32_t cluster_ctas) {
  ctas_.configure(cores, cta_threads, cluster_ctas, *this);
  const size_t place = size_t{1} << ctas_.shift();
  team_size_ = std::max<size_t>(1, cluster_ctas > 1 ? groups_.size() : place / groups_.width());
  is_released_.assign(groups_.size(), 0);
  released_.assign(groups_.size() / team_size_ + 1, 0);
}

template <class F>
void GroupedThreads::for_groups(uint32_t place, F f) {
  const uint32_t cores = 1u << ctas_.shift(), width = groups_.width();
  if (cores < width) {
    const uint32_t first = place * cores, lane = first % width;
    Group& g = groups_[first / width];  // of one CTA, if it is the last
    f(g, (((uint64_t{1} << cores) - 1) << lane) & g.exists, 0u - lane);
    return;
  }
  for (uint32_t thread = 0; thread < ctas_.cta_threads(); thread += width) {
    Group& g = groups_[(place * cores + thread) / width];
    f(g, g.exists, thread);
  }
}

void GroupedThreads::begin(uint32_t place, uint32_t uop) {
  ctas_.begin(place);
  for_groups(place, [&](Group& g, uint64_t lanes, uint32_t) {
    const uint64_t alive = this->alive(g) & lanes;
    if (lanes == g.exists) {
      g.active = 0;
      g.turns = {};
      g.depth = 0;
    }
    set_keys(g, lanes, key_of(0, g.machine->rank[uop]));
    g.runnable = (g.runnable & ~lanes) | alive;
    g.waiting &= ~lanes;
    g.watchers &= ~lanes;
  });
}

void GroupedThreads::set_slots(uint32_t place, Slot slot, CoreWord value) {
  for_groups(place, [&](Group& g, uint64_t lanes, uint32_t thread) {
    if (lanes == g.exists)
      return set_compact(g, slot, {value.of(thread), g.width > 1 ? value.step : 0});
    for_each_lane(lanes, [&](uint32_t lane) { set_lane(g, slot, lane, value.of(thread + lane)); });
  });
}

const Uop& GroupedThreads::row(uint32_t core) {
  const Group& g = group_of(core);
  return module_.uops[key_pc(*g.machine, g.key(lane_of(core)))];
}
uint64_t GroupedThreads::get(uint32_t core, Slot slot) {
  return group_of(core).get_lane(slot, lane_of(core));
}
void GroupedThreads::set(uint32_t core, Slot slot, uint64_t value) {
  set_lane(group_of(core), slot, lane_of(core), value);
}

void GroupedThreads::release(uint32_t first, uint32_t lanes) {
  Group& g = group_of(first);
  const uint64_t mask = uint64_t{lanes} << lane_of(first);
  const auto next = [&](uint64_t key) {
    return make_key(*g.machine, key_depth(key), key_pc(*g.machine, key) + 1);
  };
  if ((mask & ~g.joint) == 0)
    set_keys(g, mask, next(g.joint_key));
  else
    for_each_lane(mask, [&](uint32_t lane) { set_key(g, lane, next(g.key(lane))); });
  g.runnable |= mask;
  const size_t group = first / groups_.width();
  is_released_[group] = 1;
  released_[team_of(group)] = 1;
}

}  // namespace gpusim::simd
