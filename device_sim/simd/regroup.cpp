#include "device_sim/simd/regroup.h"

#include <algorithm>
#include <numeric>

#include "device_sim/core/interleaving.h"
#include "device_sim/simd/side_counts.h"

namespace gpusim::simd {
namespace {

constexpr uint64_t kLookEvery = 16;       // slices
constexpr uint64_t kLongestPause = 4096;  // slices
// Lanes in use, on average, below which it is worth to look closer, and how many times fewer steps
// must be needed.
constexpr double kThin = 0.5;
constexpr double kGain = 1.5;
// By how much a move must have improved the use of lanes to count as a success.
constexpr double kSuccess = 1.2;

// How many different places the lanes of `mask` are at.
uint64_t places(const Group& g, uint64_t mask) {
  if (mask == 0) return 0;
  std::array<uint32_t, kMaxLanes> ranks;
  size_t count = 0;
  for_each_lane(mask, [&](uint32_t lane) { ranks[count++] = key_rank(g.key(lane)); });
  std::sort(ranks.begin(), ranks.begin() + count);
  return static_cast<uint64_t>(std::unique(ranks.begin(), ranks.begin() + count) - ranks.begin());
}

// A core's state while it is on its way.
struct Moving {
  uint64_t key = 0;
  bool runnable = false, waiting = false;
  Watch watch;
  ClassCounts tally{};
};

}  // namespace

void Regrouper::configure(std::span<Group> groups, uint32_t cores, uint32_t width) {
  *this = Regrouper();
  groups_ = groups;
  cores_ = cores;
  width_ = width;
  pause_ = kLookEvery;
  // One group has nobody to exchange cores with, and a group of one core no idle lanes.
  next_look_ = groups.size() > 1 && width > 1 ? kLookEvery : ~uint64_t{0};
}

uint64_t Regrouper::instructions(const Group& g) {
  uint64_t sum = g.flushed_instructions + side_instructions(g);
  for (size_t e = 0; e < kEpochs; ++e)
    sum += uint64_t{g.epochs[e].counts[kInsnCount]} *
           static_cast<uint64_t>(std::popcount(g.epoch_mask[e]));
  return sum;
}

bool Regrouper::set_state(const State& state) {
  std::vector<uint32_t> position_of(state.core_at.size(), cores_);
  if (!state.core_at.empty() && state.core_at.size() != cores_) return false;
  for (uint32_t position = 0; position < state.core_at.size(); ++position) {
    const uint32_t core = state.core_at[position];
    if (core >= cores_ || position_of[core] != cores_) return false;
    position_of[core] = position;
  }
  core_at_ = state.core_at;
  position_of_ = std::move(position_of);
  for (Group& g : groups_) g.cores = is_mixed() ? core_at_.data() + g.first_core : nullptr;
  next_look_ = state.next_look;
  pause_ = state.pause;
  before_ = state.before;
  return true;
}

void Regrouper::look_again(uint64_t slice, uint64_t pause) {
  pause_ = std::min(pause, kLongestPause);
  next_look_ = slice + pause_;
}

// Groups in which lanes idle and some core may go on.
std::vector<uint32_t> Regrouper::thin_groups() const {
  std::vector<uint32_t> thin;
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (g.runnable == 0) continue;
    const auto lanes = static_cast<uint64_t>(std::popcount(g.runnable));
    if (lanes < width_ * places(g, g.runnable)) thin.push_back(i);
  }
  return thin;
}

uint64_t Regrouper::steps_now(std::span<const uint32_t> groups) const {
  uint64_t steps = 0;
  for (const uint32_t i : groups) steps += places(groups_[i], groups_[i].runnable);
  return steps;
}

uint64_t Regrouper::steps_sorted(std::span<const uint32_t> groups) const {
  std::vector<uint32_t> ranks;
  for (const uint32_t i : groups)
    for_each_lane(groups_[i].runnable,
                  [&](uint32_t lane) { ranks.push_back(key_rank(groups_[i].key(lane))); });
  std::sort(ranks.begin(), ranks.end());
  uint64_t steps = 0;
  for (size_t i = 0; i < ranks.size(); ++i) steps += i % width_ == 0 || ranks[i] != ranks[i - 1];
  return steps;
}

// All cores that may go on stand at one place, or nearly so: then each may as well do so in its
// own.
bool Regrouper::is_better_unmixed() const {
  std::vector<uint32_t> all(groups_.size());
  std::iota(all.begin(), all.end(), 0u);
  uint64_t unmixed = 0;
  std::vector<uint32_t> ranks;
  for (uint32_t core = 0; core < cores_; ++core) {
    const Group& g = groups_[position_of_[core] / width_];
    const uint32_t lane = position_of_[core] % width_;
    if (g.runnable >> lane & 1) ranks.push_back(key_rank(g.key(lane)));
    if (core % width_ != width_ - 1 && core + 1 != cores_) continue;
    std::sort(ranks.begin(), ranks.end());
    unmixed += static_cast<uint64_t>(std::unique(ranks.begin(), ranks.end()) - ranks.begin());
    ranks.clear();
  }
  return unmixed <= steps_now(all);
}

bool Regrouper::after_slice(uint64_t slice, uint64_t instructions, uint64_t steps) {
  const double use = steps == 0 ? 1.0 : double(instructions) / (double(steps) * width_);
  const bool failed = before_ != 0 && use < before_ * kSuccess;
  before_ = 0;
  if (failed) {
    look_again(slice, pause_ * 2);
    return false;
  }
  if (is_mixed() && is_better_unmixed()) {
    unmix();
    look_again(slice, kLookEvery);
    return true;
  }
  look_again(slice, pause_);
  if (use > kThin) return false;
  const std::vector<uint32_t> thin = thin_groups();
  if (thin.size() < 2 || double(steps_now(thin)) < kGain * double(steps_sorted(thin))) return false;
  sort(thin);
  before_ = use;
  return true;
}

void Regrouper::sort(std::span<const uint32_t> groups) {
  struct Entry {
    uint64_t order;
    uint32_t core;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries;
  for (const uint32_t i : groups) {
    const Group& g = groups_[i];
    for (uint32_t lane = 0; lane < g.width; ++lane) {
      const uint64_t bit = uint64_t{1} << lane;
      // Those that wait go behind those that run, those that have ended behind both.
      const uint64_t state = g.runnable & bit ? 0 : g.waiting & bit ? 1 : 2;
      entries.push_back(
          {state << 32 | (state == 0 ? key_rank(g.key(lane)) : 0), g.core(lane)});
    }
  }
  std::sort(entries.begin(), entries.end());
  std::vector<uint32_t> order;
  for (const Entry& e : entries) order.push_back(e.core);
  deal(groups, order);
}

void Regrouper::shuffle(uint64_t seed, uint64_t slice) {
  std::vector<uint32_t> all(groups_.size()), order(cores_);
  std::iota(all.begin(), all.end(), 0u);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = cores_; i > 1; --i)
    std::swap(order[i - 1], order[mixed(seed, slice, cores_ + i) % i]);
  deal(all, order);
}

void Regrouper::unmix() {
  std::vector<uint32_t> all(groups_.size()), order(cores_);
  std::iota(all.begin(), all.end(), 0u);
  std::iota(order.begin(), order.end(), 0u);
  deal(all, order);
  core_at_.clear();
  position_of_.clear();
  for (Group& g : groups_) g.cores = nullptr;
}

void Regrouper::deal(std::span<const uint32_t> groups, std::span<const uint32_t> core_of) {
  if (!is_mixed()) {
    core_at_.resize(cores_);
    std::iota(core_at_.begin(), core_at_.end(), 0u);
    position_of_ = core_at_;
    for (Group& g : groups_) g.cores = core_at_.data() + g.first_core;
  }
  // Take all out ...
  std::vector<uint32_t> from(core_of.size());
  std::transform(core_of.begin(), core_of.end(), from.begin(),
                 [&](uint32_t core) { return position_of_[core]; });
  for (const uint32_t i : groups) flush_epochs(groups_[i]);
  std::vector<Moving> moving(core_of.size());
  for (size_t k = 0; k < from.size(); ++k) {
    const Group& g = groups_[from[k] / width_];
    const uint32_t lane = from[k] % width_;
    Moving& m = moving[k];
    m.key = g.key(lane);
    m.runnable = g.runnable >> lane & 1;
    m.waiting = g.waiting >> lane & 1;
    if (m.waiting) m.watch = g.watchers >> lane & 1 ? g.watch : g.watches[lane];
    m.tally = g.lane_tally[lane];
  }
  std::vector<uint64_t> values(core_of.size());
  const uint32_t slots = groups_[groups[0]].slot_count;
  for (uint32_t s = 0; s < slots; ++s) {
    const auto slot = static_cast<Slot>(s);
    const Group& first = groups_[groups[0]];
    const auto same_everywhere = [&](uint32_t i) {
      const Group& g = groups_[i];
      return g.kind[slot] == kUniform && g.compact(slot).base == first.compact(slot).base;
    };
    if (std::all_of(groups.begin(), groups.end(), same_everywhere)) continue;
    for (size_t k = 0; k < from.size(); ++k)
      values[k] = groups_[from[k] / width_].get_lane(slot, from[k] % width_);
    // ... and put them where they go.
    size_t k = 0;
    for (const uint32_t i : groups) {
      Group& g = groups_[i];
      uint64_t* const row = g.lanes + size_t{slot} * kMaxLanes;
      for (uint32_t lane = 0; lane < g.width; ++lane) row[lane] = values[k++];
      g.kind[slot] = kLanes;
      g.filled[slot] = false;
      g.lost[slot / 64] |= uint64_t{1} << (slot % 64);
      g.any_lost = true;
    }
  }
  size_t k = 0;
  for (const uint32_t i : groups) {
    Group& g = groups_[i];
    g.runnable = g.waiting = g.watchers = g.active = 0;
    g.turns.given = g.turns.waits = 0;
    g.turns.aging = false;
    g.turns.patience = kPatience;
    g.calls = {};
    for (uint32_t lane = 0; lane < g.width; ++lane, ++k) {
      const Moving& m = moving[k];
      const uint32_t position = i * width_ + lane;
      const uint64_t bit = uint64_t{1} << lane;
      core_at_[position] = core_of[k];
      position_of_[core_of[k]] = position;
      set_key(g, lane, m.key);
      g.lane_tally[lane] = m.tally;
      g.has_tallies = true;
      if (m.runnable) g.runnable |= bit;
      if (m.waiting) add_watch(g, bit, m.watch);
    }
  }
}

}  // namespace gpusim::simd
