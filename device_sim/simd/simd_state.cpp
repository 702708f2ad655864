// The simd machine's state for checkpoints.
#include <algorithm>

#include "device_sim/core/state_bytes.h"
#include "device_sim/simd/simd_backend.h"

namespace gpusim {

namespace {

constexpr uint32_t kKind = 0x334d4953;  // "SIM3"

template <class Archive>
void describe(Archive& a, GroupUse& use) {
  a(use.offered);
  a(use.active);
  a(use.diverged);
  a(use.asleep);
  a(use.alone);
}

}  // namespace

std::vector<uint8_t> SimdBackend::scheduling() {
  StateWriter w;
  w(kKind);
  w(groups_.width());
  w(gear_.has_value());
  if (gear_) gear_->describe(w);
  w(static_cast<uint64_t>(groups_.past_use().size()));
  for (GroupUse use : groups_.past_use()) describe(w, use);
  const simd::Regrouper::State moved = groups_.regrouper().state();
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
  scheduler_.save(w);
  return std::move(w.bytes);
}

bool SimdBackend::restore_scheduling(std::span<const uint8_t> bytes) {
  StateReader r(bytes);
  uint32_t kind = 0, width = 0;
  r(kind);
  r(width);
  if (!r.ok || kind != kKind) return false;
  if (gear_ && width != groups_.width() && (width == 1 || width == config_.group_width))
    arrange(width == 1);
  if (width != groups_.width()) return false;
  bool had_gear = false;
  r(had_gear);
  if (!r.ok || had_gear != gear_.has_value()) return false;
  if (gear_) {
    gear_->describe(r);
    if (!r.ok || !gear_->is_sound()) {
      gear_ = new_gear();
      return false;
    }
  }
  uint64_t past_groups = 0;
  r(past_groups);
  if (past_groups > config_.cores) return false;
  std::vector<GroupUse> past(past_groups);
  for (GroupUse& use : past) describe(r, use);
  if (!r.ok || !groups_.set_past_use(std::move(past))) return false;
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
    if (!r.ok || !order_.set(*module_, std::move(rank), computed)) return false;
    view_machine();
  }
  if (!r.ok || !groups_.regrouper().set_state(moved)) return false;
  if (!scheduler_.load(r) || !r.at_end()) return false;
  unmarked_ = kLookAtOnce;  // native code is made anew
  return true;
}

void SimdBackend::set_cores(std::span<const CoreSnapshot> cores,
                            std::span<const uint8_t> scheduling) {
  const bool scheduled = restore_scheduling(scheduling);
  if (!scheduled) {
    groups_.reset();
    scheduler_.restart();
    unmarked_ = kLookAtOnce;
  }
  groups_.restore(cores, scheduled);
  if (scheduled) return;
  groups_.assume_full_use();
  scheduler_.reset();
}

void SimdBackend::set_block_counts(std::span<const uint64_t> counts,
                                   std::span<const uint64_t> lanes) {
  std::vector<uint64_t> all_lanes;
  if (config_.count_lanes) {
    const auto known = lanes.size() == counts.size() ? lanes : counts;
    all_lanes.assign(known.begin(), known.end());
  }
  scheduler_.blocks().set({counts.begin(), counts.end()}, std::move(all_lanes));
}

}  // namespace gpusim
