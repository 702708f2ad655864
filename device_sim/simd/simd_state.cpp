// The simd machine's state for checkpoints.
#include <algorithm>

#include "device_sim/core/state_bytes.h"
#include "device_sim/simd/simd_backend.h"

namespace gpusim {

using simd::Group;
using simd::kMaxLanes;

namespace {

constexpr uint32_t kKind = 0x324d4953;  // "SIM2"

}  // namespace

uint64_t SimdBackend::instructions() {
  uint64_t sum = 0;
  for (const Group& g : groups_) sum += simd::Regrouper::instructions(g);
  return sum;
}

std::vector<CoreSnapshot> SimdBackend::cores() {
  for (Group& g : groups_) simd::flush_epochs(g);
  std::vector<CoreSnapshot> all(config_.cores);
  for (Group& g : groups_)
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      CoreSnapshot& c = all[g.core(lane)];
      c.runnable = (g.runnable | g.waiting) >> lane & 1;
      c.place = simd::key_pc(machine_, g.key(lane));
      c.depth = key_depth(g.key(lane));
      c.instructions = g.lane_tally[lane][simd::kInsnCount];
      c.classes = g.lane_tally[lane];
      c.classes[simd::kInsnCount] = 0;
    }
  return all;
}

// What decides when the group's lanes run; where they are is not in here.
template <class Archive>
void SimdBackend::describe_group(Archive& a, size_t group) {
  Group& g = groups_[group];
  a(g.runnable);
  a(g.waiting);
  a(g.active);
  a(g.depth);
  a(g.wait_key);
  a(g.turns.patience);
  a(g.turns.polled);
  a(g.turns.given);
  a(g.turns.waits);
  a(g.turns.depth);
  a(g.turns.aging);
  a(g.gave_way);
  a(g.turns.lane);
  a(g.watchers);
  a(memory_.view(), g.watch);
  simd::for_each_lane(g.waiting & ~g.watchers & g.exists,
                      [&](uint32_t lane) { a(memory_.view(), g.watches[lane]); });
  a(g.events_now);
  a(g.events_before);
  a(g.slices);
  a(g.flushed_instructions);
  a(g.steps);
  a(g.diverged);
  a(g.asleep);
  Rest& rest = rests_[group];
  auto state = static_cast<uint8_t>(rest.state);
  a(state);
  rest.state = static_cast<Rest::State>(state);
  a(rest.rounds);
  a(rest.until);
  a(rest.used);
  a(memory_.view(), rest.watch);
}

template <class Archive>
void SimdBackend::describe_scheduling(Archive& a) {
  a(slices_);
  uint32_t last = awake_.empty() ? 0 : awake_.front();
  a(last);
  awake_.assign(1, last);
  for (size_t i = 0; i < groups_.size(); ++i) describe_group(a, i);
}

std::vector<uint8_t> SimdBackend::scheduling() {
  StateWriter w;
  w(kKind);
  w(width_);
  if (gear_) gear_->describe(w);
  const simd::Regrouper::State moved = regrouper_.state();
  w(static_cast<uint64_t>(moved.core_at.size()));
  for (const uint32_t core : moved.core_at) w(core);
  w(moved.next_look);
  w(moved.pause);
  w(moved.before);
  // Ranks differ from those of a module that was never smaller only once it grew.
  const bool grew = order_.computed() != order_.rank().size();
  w(grew);
  if (grew) {
    w(static_cast<uint64_t>(order_.computed()));
    for (const uint32_t rank : order_.rank()) w(rank);
  }
  describe_scheduling(w);
  return std::move(w.bytes);
}

bool SimdBackend::restore_scheduling(std::span<const uint8_t> bytes) {
  StateReader r(bytes);
  uint32_t kind = 0, width = 0;
  r(kind);
  r(width);
  if (!r.ok || kind != kKind) return false;
  if (gear_ && width != width_ && (width == 1 || width == config_.group_width)) arrange(width == 1);
  if (width != width_) return false;
  if (gear_) {
    gear_->describe(r);
    if (!r.ok || !gear_->is_sound()) {
      gear_ = new_gear();
      return false;
    }
  }
  simd::Regrouper::State moved;
  uint64_t moved_cores = 0;
  r(moved_cores);
  if (moved_cores > config_.cores) return false;
  moved.core_at.resize(moved_cores);
  for (uint32_t& core : moved.core_at) r(core);
  r(moved.next_look);
  r(moved.pause);
  r(moved.before);
  bool grew = false;
  r(grew);
  if (grew) {
    uint64_t computed = 0;
    r(computed);
    std::vector<uint32_t> rank(module_->uops.size());
    for (uint32_t& one : rank) r(one);
    if (!r.ok || !order_.set(std::move(rank), computed)) return false;
    view_machine();
  }
  if (!r.ok || !regrouper_.set_state(moved)) return false;
  describe_scheduling(r);
  if (!r.ok || !r.at_end() || awake_.front() >= groups_.size()) return false;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (((g.runnable | g.waiting | g.active) & ~g.exists) || (g.runnable & g.waiting) ||
        (g.watchers & ~g.waiting) || g.turns.given < 0 || g.turns.given > kMaxDoublings ||
        g.turns.waits < 0 || g.turns.waits > kMaxShortDoublings || g.turns.lane >= kMaxLanes ||
        rests_[i].state > Rest::State::kPolling)
      return false;
  }
  next_mark_ = slices_;  // native code is made anew
  return true;
}

void SimdBackend::set_cores(std::span<const CoreSnapshot> cores,
                            std::span<const uint8_t> scheduling) {
  const bool scheduled = restore_scheduling(scheduling);
  if (!scheduled) {
    make_groups(/*is_new=*/false);
    awake_.clear();
    slices_ = next_mark_ = 0;
  }
  put_cores(cores, scheduled);
}

void SimdBackend::put_cores(std::span<const CoreSnapshot> cores, bool scheduled) {
  runnable_ = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& g = groups_[i];
    uint64_t runnable = 0;
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      const CoreSnapshot& c = cores[g.core(lane)];
      simd::set_key(g, lane, simd::make_key(machine_, c.depth, c.place));
      g.has_tallies = true;
      g.lane_tally[lane] = c.classes;
      g.lane_tally[lane][simd::kInsnCount] = c.instructions;
      if (!scheduled) g.flushed_instructions += c.instructions;
      if (c.runnable) runnable |= uint64_t{1} << lane;
    }
    g.waiting &= runnable;
    g.watchers &= runnable;
    g.runnable = runnable & ~g.waiting;
    // As if all lanes had been used so far.
    if (!scheduled) g.steps = (g.flushed_instructions + g.width - 1) / g.width;
    g.budget = 0;
    simd::begin_lanes(g);
    if (!scheduled && runnable) rests_[i].state = Rest::State::kAwake;
    runnable_ += static_cast<uint32_t>(std::popcount(runnable));
  }
}

void SimdBackend::slots(Slot slot, std::span<uint64_t> values) {
  for (const Group& g : groups_)
    for (uint32_t lane = 0; lane < g.width; ++lane) values[g.core(lane)] = g.get_lane(slot, lane);
}

void SimdBackend::set_all_slots(Slot slot, std::span<const uint64_t> values) {
  for (Group& g : groups_) {
    const auto value = [&](uint32_t lane) { return values[g.core(lane)]; };
    const simd::Compact row{value(0), g.width > 1 ? value(1) - value(0) : 0};
    bool is_compact = true;
    for (uint32_t lane = 0; lane < g.width; ++lane)
      is_compact &= value(lane) == row.base + lane * row.stride;
    if (!is_compact) {
      for (uint32_t lane = 0; lane < g.width; ++lane) simd::set_lane(g, slot, lane, value(lane));
    } else if (g.kind[slot] != simd::kUniform || row.stride != 0 ||
               g.compact(slot).base != row.base) {  // storage that was never touched stays so
      simd::set_compact(g, slot, row);
    }
  }
}

void SimdBackend::set_block_counts(std::span<const uint64_t> counts,
                                   std::span<const uint64_t> lanes) {
  BlockCounter& all = all_blocks();
  std::copy(counts.begin(), counts.end(), all.counts.begin());
  if (config_.count_lanes) {
    const auto known = lanes.size() == counts.size() ? lanes : counts;
    std::copy(known.begin(), known.end(), all.lanes.begin());
  }
}

}  // namespace gpusim
