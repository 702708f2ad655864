// The threads of CTAs (core/ctas.h) in groups of lanes: a group holds whole warps, of one CTA
// unless CTAs have 32 threads or fewer. The groups of one CTA, or a group of two, are a team: one
// host thread runs it at a time. Where there are clusters, all groups are one.
#pragma once
#include <algorithm>
#include <vector>

#include "device_sim/core/ctas.h"
#include "device_sim/simd/groups.h"

namespace gpusim::simd {

class GroupedThreads final : public Ctas::Threads {
 public:
  // Both must stay where they are.
  GroupedThreads(Groups& groups, const Module& module) : groups_(groups), module_(module) {}
  // After the groups were made anew: nobody lives.
  void reset(uint32_t cores, uint32_t cta_threads, uint32_t cluster_ctas);

  Ctas& ctas() { return ctas_; }
  const Ctas& ctas() const { return ctas_; }
  uint64_t alive(const Group& g) const {
    return lanes_of(g, [](const Ctas::Warp& w) { return w.alive; });
  }
  uint64_t blocked(const Group& g) const {
    return lanes_of(g, [](const Ctas::Warp& w) { return w.blocked(); });
  }

  size_t team_of(size_t group) const { return group / team_size_; }
  // Calls f(group) for the groups of this one's team in which lanes were let go on since the last
  // call.
  template <class F>
  void take_released(size_t group, F f) {
    if (!released_[team_of(group)]) return;
    released_[team_of(group)] = false;
    const size_t first = team_of(group) * team_size_;
    for (size_t i = first; i < std::min(first + team_size_, is_released_.size()); ++i)
      if (is_released_[i] != 0) {
        is_released_[i] = 0;
        f(i);
      }
  }

  void begin(uint32_t place, uint32_t uop);
  void set_slots(uint32_t place, Slot slot, CoreWord value);

  // Ctas::Threads.
  const Uop& row(uint32_t core) override;
  uint64_t get(uint32_t core, Slot slot) override;
  void set(uint32_t core, Slot slot, uint64_t value) override;
  void release(uint32_t first, uint32_t lanes) override;

 private:
  template <class F>
  uint64_t lanes_of(const Group& g, F f) const {
    const Ctas::Warp* const warp = &ctas_.warp_of(g.first_core);
    return f(warp[0]) | (g.width > kWarpLanes ? uint64_t{f(warp[1])} << kWarpLanes : 0);
  }
  Group& group_of(uint32_t core) { return groups_[core / groups_.width()]; }
  uint32_t lane_of(uint32_t core) const { return core % groups_.width(); }
  // Calls f(group, its lanes, thread of its first lane) for the groups of a CTA.
  template <class F>
  void for_groups(uint32_t place, F f);

  Groups& groups_;
  const Module& module_;
  Ctas ctas_;
  size_t team_size_ = 1;              // groups
  std::vector<uint8_t> released_;     // per team: one of the next has some
  std::vector<uint8_t> is_released_;  // per group
};

}  // namespace gpusim::simd
