// The cores of a machine in their groups: what they hold, where they are, what they have done.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "device_sim/core/guest_memory.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/simd/access_cost.h"
#include "device_sim/simd/group.h"
#include "device_sim/simd/regroup.h"

namespace gpusim::simd {

class Groups {
 public:
  // Instructions over all lanes of some groups, and steps of these groups.
  struct LaneUse {
    uint64_t instructions = 0, steps = 0;
    LaneUse operator-(const LaneUse& before) const {
      return {instructions - before.instructions, steps - before.steps};
    }
  };

  // New storage for so many cores, in groups of `width` or alone. `machine`, which every group uses,
  // may change between slices; it and `module` must stay where they are. Then come arrange() and
  // reset().
  void configure(const Machine& machine, const Module& module, uint32_t cores, uint32_t width,
                 uint32_t cta_threads = 0);
  // Groups of as many cores as configure() said, or of one; storage is kept of both. Then comes
  // reset().
  void arrange(bool alone);
  // Idle cores in their own places, with the registers that the module begins with.
  void reset();

  std::span<Group> all() { return groups_; }
  std::span<const Group> all() const { return groups_; }
  Group& operator[](size_t group) { return groups_[group]; }
  const Group& operator[](size_t group) const { return groups_[group]; }
  size_t size() const { return groups_.size(); }
  uint32_t width() const { return width_; }
  // Whether every group has one core.
  bool is_of_one() const { return width_ == 1 || cores_ == 1; }
  size_t number_of(uint32_t core) const { return regrouper_.position(core) / width_; }
  Regrouper& regrouper() { return regrouper_; }
  uint64_t instructions() const;
  // With Machine::counts_lanes: per group as configured, also while cores run alone.
  std::vector<GroupUse> use() const;
  // The part of use() from before this arrangement. False: it is of another number of groups.
  const std::vector<GroupUse>& past_use() const { return past_use_; }
  bool set_past_use(std::vector<GroupUse> past);
  LaneUse use_of(std::span<const uint32_t> groups) const;
  // Of what these groups do next.
  AccessCost access_cost_of(std::span<const uint32_t> groups) const;

  // Cores that are runnable or wait for an event.
  uint32_t runnable() const { return runnable_; }
  void set_runnable(uint32_t cores) { runnable_ = cores; }
  void find_sleepers(std::span<uint8_t> out) const;  // core/sleepers.h
  void let_calls_go_first() { calls_go_first_ = true; }
  void start(uint32_t core, uint32_t uop);
  void start_all(uint32_t uop);
  void stop(uint32_t core);
  uint32_t place(uint32_t core) { return key_pc(machine(), of(core).key(lane_of(core))); }
  // Waiting lanes are where they were when micro-ops have other ranks.
  void move_keys(std::span<const uint32_t> uop_of_former_rank);

  uint64_t slot(uint32_t core, Slot slot) { return of(core).get_lane(slot, lane_of(core)); }
  void set_slot(uint32_t core, Slot slot, uint64_t value) {
    const uint32_t lane = lane_of(core);
    if (lane < of(core).width) set_lane(of(core), slot, lane, value);  // else no such thread
  }
  // Of all cores.
  void set_slots(Slot slot, CoreWord value);
  void slots(Slot slot, std::span<uint64_t> values) const;
  void set_all_slots(Slot slot, std::span<const uint64_t> values);

  // The class kInsnCount of both counts no class, and is 0.
  CoreTally tally(uint32_t core);
  CoreTally tally_of_all() const;

  std::vector<CoreSnapshot> snapshot();
  // `scheduled`: the groups' own state is that of the snapshot; otherwise they have no steps yet.
  void restore(std::span<const CoreSnapshot> cores, bool scheduled);
  // As if all lanes had been used so far.
  void assume_full_use();

 private:
  struct Storage {
    LazyMemory slots;  // [group][slot][kMaxLanes]
    LazyMemory groups;
    LazyMemory watches;  // [group][lane]
    LazyMemory tallies;  // [group][lane]
  };
  uint32_t width_of(uint32_t first_core) const;
  const Machine& machine() const { return *machine_; }
  uint64_t count(uint32_t width) const { return (uint64_t{cores_} + width - 1) / width; }
  Group& of(uint32_t core) { return groups_[number_of(core)]; }
  uint32_t lane_of(uint32_t core) const { return regrouper_.position(core) % width_; }

  const Machine* machine_ = nullptr;
  const Module* module_ = nullptr;
  uint32_t cores_ = 0, width_ = kMaxLanes, cta_threads_ = 0;
  uint32_t full_width_ = kMaxLanes;  // of groups, if not alone
  bool calls_go_first_ = false;      // core/calls_first.h
  Storage storages_[2];  // of cores in lockstep, and alone
  std::span<Group> groups_;
  Regrouper regrouper_;
  uint32_t runnable_ = 0;
  std::vector<GroupUse> past_use_;  // in other arrangements of this run; empty: there were none
};

}  // namespace gpusim::simd
