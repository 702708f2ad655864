#include "device_sim/simd/groups.h"

#include <algorithm>
#include <new>

#include "device_sim/core/cta.h"
#include "device_sim/simd/next_turn.h"
#include "device_sim/simd/side_counts.h"
#include "device_sim/simd/watched.h"

namespace gpusim::simd {

void Groups::configure(const Machine& machine, const Module& module, uint32_t cores,
                       uint32_t width, uint32_t cta_threads) {
  cta_threads_ = cta_threads;
  machine_ = &machine;
  module_ = &module;
  cores_ = cores;
  full_width_ = width;
  for (Storage& storage : storages_) storage = {};
}

void Groups::arrange(bool alone) {
  const uint32_t width = width_ = alone ? 1 : full_width_;
  const uint64_t groups = count(width);
  Storage& s = storages_[width == 1];
  if (s.groups.data() == nullptr) {
    const uint64_t group_words = uint64_t{module_->slot_count} * kMaxLanes;
    // A group of one core hardly ever uses its rows.
    s.slots = LazyMemory(groups * group_words * sizeof(uint64_t), "contexts",
                         width == 1 ? Pages::kSmall : Pages::kHuge);
    s.groups = LazyMemory(groups * sizeof(Group), "groups of cores", Pages::kHuge);
    s.watches = LazyMemory(groups * width * sizeof(Watch), "waiting cores");
    s.tallies = LazyMemory(groups * tally_bytes(width), "tallies", Pages::kHuge);
  }
  groups_ = {reinterpret_cast<Group*>(s.groups.data()), groups};
}

// Cores behind the last thread of a CTA do not exist.
uint32_t Groups::width_of(uint32_t first_core) const {
  const uint32_t width = std::min(width_, cores_ - first_core);
  if (cta_threads_ == 0) return width;
  const uint32_t place = 1u << cta_shift_of(cta_threads_);
  const uint32_t thread = first_core % place;
  if (place < width) return width;
  return thread < cta_threads_ ? std::min(width, cta_threads_ - thread) : 0;
}

void Groups::reset() {
  const Storage& s = storages_[width_ == 1];
  runnable_ = 0;
  past_use_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const bool has_tallies = groups_[i].has_tallies;  // new storage is zero
    Group& g = *new (&groups_[i]) Group();
    g.machine = machine_;
    g.slot_count = module_->slot_count;
    g.lanes = reinterpret_cast<uint64_t*>(s.slots.data()) + i * g.slot_count * kMaxLanes;
    g.watches = reinterpret_cast<Watch*>(s.watches.data()) + i * width_;
    g.lane_tally = reinterpret_cast<ClassCounts*>(s.tallies.data() + i * tally_bytes(width_));
    if (has_tallies) std::fill_n(g.lane_tally, width_, ClassCounts{});
    g.first_core = static_cast<uint32_t>(i * width_);
    g.width = width_of(g.first_core);
    if (side_instructions(g) != 0) *side_counts(g) = {};
    g.exists = g.width == 0 ? 0 : ~uint64_t{0} >> (64 - g.width);
    set_keys(g, g.exists, key_of(0, 0));
    for (const InitialValue& v : module_->initial_values) set_compact(g, v.slot, {v.value, 0});
  }
  regrouper_.configure(groups_, cores_, width_);
}

uint64_t Groups::instructions() const {
  uint64_t sum = 0;
  for (const Group& g : groups_) sum += Regrouper::instructions(g);
  return sum;
}

std::vector<GroupUse> Groups::use() const {
  if (!machine().counts_lanes) return {};
  std::vector<GroupUse> list(count(full_width_));
  for (const Group& g : groups_) {
    GroupUse& u = list[g.first_core / full_width_];
    u.offered += g.steps * g.width;
    u.active += Regrouper::instructions(g);
    u.diverged += g.diverged;
    u.asleep += g.asleep;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const GroupUse past = past_use_.empty() ? GroupUse{} : past_use_[i];
    list[i].offered += past.offered;
    list[i].diverged += past.diverged;
    list[i].asleep += past.asleep;
    list[i].alone = past.alone + (width_ != full_width_ ? list[i].active - past.active : 0);
  }
  return list;
}

bool Groups::set_past_use(std::vector<GroupUse> past) {
  if (!past.empty() && past.size() != count(full_width_)) return false;
  past_use_ = std::move(past);
  return true;
}

Groups::LaneUse Groups::use_of(std::span<const uint32_t> groups) const {
  LaneUse sum;
  for (const uint32_t i : groups) {
    sum.instructions += Regrouper::instructions(groups_[i]);
    sum.steps += groups_[i].steps;
  }
  return sum;
}

AccessCost Groups::access_cost_of(std::span<const uint32_t> groups) const {
  AccessCost sum;
  for (const uint32_t i : groups) sum += next_access_cost(groups_[i]);
  return sum;
}

void Groups::find_sleepers(std::span<uint8_t> out) const {
  for (const Group& g : groups_) {
    const bool have_event = g.watchers != 0 && has_event(g.watch, machine().memory);
    for_each_lane(g.exists, [&](uint32_t lane) {
      const auto is_in = [lane](uint64_t mask) { return (mask >> lane & 1) != 0; };
      const bool is_awake = is_in(g.runnable) || (is_in(g.watchers) && have_event) ||
                            (is_in(g.waiting & ~g.watchers) &&
                             has_event(g.watches[lane], machine().memory));
      out[g.core(lane)] = !is_awake;
    });
  }
}

void Groups::start(uint32_t core, uint32_t uop) {
  stop(core);
  Group& g = of(core);
  const uint32_t lane = lane_of(core);
  set_key(g, lane, make_key(machine(), key_depth(g.key(lane)), uop));
  if (calls_go_first_ && g.runnable != 0) simd::give_next_turn(g.turns, g.calls, lane);
  g.runnable |= uint64_t{1} << lane;
  ++runnable_;
}

void Groups::start_all(uint32_t uop) {
  const auto key = [&](uint64_t former) { return make_key(machine(), key_depth(former), uop); };
  for (Group& g : groups_) {
    if (g.joint == g.exists)
      set_keys(g, g.exists, key(g.joint_key));
    else
      for_each_lane(g.exists, [&](uint32_t l) { set_key(g, l, key(g.key(l))); });
    g.runnable = g.exists;
    g.waiting = g.watchers = 0;
  }
  runnable_ = cores_;
}

void Groups::stop(uint32_t core) {
  Group& g = of(core);
  const uint32_t lane = lane_of(core);
  if (!((g.runnable | g.waiting) >> lane & 1)) return;
  --runnable_;
  take_out(g, lane);
  set_key(g, lane, g.key(lane));  // those that go on stay joint
}

void Groups::move_keys(std::span<const uint32_t> uop_of_former_rank) {
  for (Group& g : groups_)
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      const uint64_t key = g.key(lane);
      const uint32_t uop = uop_of_former_rank[key_rank(key)];
      set_key(g, lane, make_key(machine(), key_depth(key), uop));
    }
}

void Groups::set_slots(Slot slot, CoreWord value) {
  for (Group& g : groups_) {
    if (!regrouper_.is_mixed())
      set_compact(g, slot, {value.of(g.first_core), g.width > 1 ? value.step : 0});
    else
      for (uint32_t lane = 0; lane < g.width; ++lane)
        set_lane(g, slot, lane, value.of(g.core(lane)));
  }
}

void Groups::slots(Slot slot, std::span<uint64_t> values) const {
  for (const Group& g : groups_)
    for (uint32_t lane = 0; lane < g.width; ++lane) values[g.core(lane)] = g.get_lane(slot, lane);
}

void Groups::set_all_slots(Slot slot, std::span<const uint64_t> values) {
  for (Group& g : groups_) {
    const auto value = [&](uint32_t lane) { return values[g.core(lane)]; };
    const Compact row{value(0), g.width > 1 ? value(1) - value(0) : 0};
    bool is_compact = true;
    for (uint32_t lane = 0; lane < g.width; ++lane)
      is_compact &= value(lane) == row.base + lane * row.stride;
    if (!is_compact) {
      for (uint32_t lane = 0; lane < g.width; ++lane) set_lane(g, slot, lane, value(lane));
    } else if (g.kind[slot] != kUniform || row.stride != 0 ||
               g.compact(slot).base != row.base) {  // storage that was never touched stays so
      set_compact(g, slot, row);
    }
  }
}

CoreTally Groups::tally(uint32_t core) {
  CoreTally t;
  flush_epochs(of(core));
  t.classes = of(core).lane_tally[lane_of(core)];
  t.classes[kInsnCount] = 0;
  return t;
}

CoreTally Groups::tally_of_all() const {
  CoreTally t;
  for (const Group& g : groups_) {
    for (size_t e = 0; e < kEpochs; ++e) {
      const auto lanes = static_cast<uint64_t>(std::popcount(g.epoch_mask[e]));
      if (g.epochs[e].counts[kInsnCount] == 0) continue;
      for (size_t c = 0; c < t.classes.size(); ++c)
        t.classes[c] += lanes * g.epochs[e].counts[c];
    }
    add_sides(g, t.classes);
    for (uint32_t lane = 0; g.has_tallies && lane < g.width; ++lane)
      for (size_t c = 0; c < t.classes.size(); ++c) t.classes[c] += g.lane_tally[lane][c];
  }
  t.classes[kInsnCount] = 0;
  return t;
}

std::vector<CoreSnapshot> Groups::snapshot() {
  std::vector<CoreSnapshot> all(cores_);
  for (Group& g : groups_) {
    flush_epochs(g);
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      CoreSnapshot& c = all[g.core(lane)];
      c.runnable = (g.runnable | g.waiting) >> lane & 1;
      c.place = key_pc(machine(), g.key(lane));
      c.depth = key_depth(g.key(lane));
      c.instructions = g.lane_tally[lane][kInsnCount];
      c.classes = g.lane_tally[lane];
      c.classes[kInsnCount] = 0;
    }
  }
  return all;
}

void Groups::restore(std::span<const CoreSnapshot> cores, bool scheduled) {
  runnable_ = 0;
  for (Group& g : groups_) {
    uint64_t runnable = 0;
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      const CoreSnapshot& c = cores[g.core(lane)];
      set_key(g, lane, make_key(machine(), c.depth, c.place));
      g.has_tallies = true;
      g.lane_tally[lane] = c.classes;
      g.lane_tally[lane][kInsnCount] = c.instructions;
      if (!scheduled) g.flushed_instructions += c.instructions;
      if (c.runnable) runnable |= uint64_t{1} << lane;
    }
    g.waiting &= runnable;
    g.watchers &= runnable;
    g.runnable = runnable & ~g.waiting;
    g.budget = 0;
    begin_lanes(g);
    runnable_ += static_cast<uint32_t>(std::popcount(runnable));
  }
}

void Groups::assume_full_use() {
  for (Group& g : groups_) {
    g.steps = (g.flushed_instructions + g.width - 1) / g.width;
    begin_lanes(g);
  }
}

}  // namespace gpusim::simd
