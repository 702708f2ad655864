#include "device_sim/simd/group.h"

#include <hwy/highway.h>

#include <algorithm>

namespace gpusim::simd {

namespace {

void flush(Group& g, Epoch& e) {
  if (e.tally.counts[kInsnCount] == 0) return;
  for_each_lane(e.mask, [&](uint32_t lane) {
    for (int c = 0; c < 16; ++c) g.lane_tally[lane][static_cast<size_t>(c)] += e.tally.counts[c];
  });
  e.tally = BlockTally{};
}

// Keys of lanes as vectors. This file is compiled for the baseline target only.
namespace hn = hwy::HWY_NAMESPACE;
using Keys = hn::ScalableTag<uint64_t>;
constexpr uint32_t kKeys = HWY_LANES(uint64_t);

// The lanes of `mask` from lane `first` on, as a mask of a vector.
hn::Mask<Keys> lanes_of(uint64_t mask, uint32_t first) {
  const auto bits = static_cast<uint8_t>(mask >> first);
  const uint8_t bytes[8] = {bits};
  return hn::LoadMaskBits(Keys(), bytes);
}

uint64_t best_waiting_key(const Group& g) {
  const uint64_t waiting = g.runnable & ~g.active;
  if (waiting == 0) return ~uint64_t{0};
  const auto none = hn::Set(Keys(), ~uint64_t{0});
  auto best = none;
  for (uint32_t lane = 0; lane < kMaxLanes; lane += kKeys)
    best = hn::Min(best, hn::IfThenElse(lanes_of(waiting, lane),
                                        hn::Load(Keys(), g.lane_key + lane), none));
  return hn::GetLane(hn::MinOfLanes(Keys(), best));
}

uint64_t lanes_at(const Group& g, uint32_t rank) {
  const auto wanted = hn::Set(Keys(), uint64_t{rank}), low = hn::Set(Keys(), uint64_t{0xffffffff});
  uint64_t mask = 0;
  for (uint32_t lane = 0; lane < kMaxLanes; lane += kKeys) {
    const auto ranks = hn::And(hn::Load(Keys(), g.lane_key + lane), low);
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(Keys(), hn::Eq(ranks, wanted), bytes);
    mask |= uint64_t{bytes[0]} << lane;
  }
  return mask & g.runnable;
}

uint32_t activate(Group& g, uint64_t key) {
  g.depth = key_depth(key);
  set_active(g, lanes_at(g, key_rank(key)));
  g.wait_key = best_waiting_key(g);
  if (g.active == g.runnable) g.turns = g.waits = 0;
  return key_pc(*g.machine, key);
}

}  // namespace

void flush_epochs(Group& g) {
  for (Epoch& e : g.epochs) flush(g, e);
}

void set_active(Group& g, uint64_t mask) {
  g.active = mask;
  g.active_count = static_cast<uint32_t>(std::popcount(mask));
  for (Epoch& e : g.epochs) {
    if (e.mask == mask) {
      g.epoch = &e;
      return;
    }
  }
  Epoch& e = g.epochs[static_cast<size_t>(g.next_epoch)];
  g.next_epoch = (g.next_epoch + 1) % kEpochs;
  flush(g, e);
  e.mask = mask;
  g.epoch = &e;
}

void set_keys(Group& g, uint64_t mask, uint64_t key) {
  const auto keys = hn::Set(Keys(), key);
  for (uint32_t lane = 0; lane < kMaxLanes; lane += kKeys)
    hn::BlendedStore(keys, lanes_of(mask, lane), Keys(), g.lane_key + lane);
}

void park(Group& g, uint32_t pc) { set_keys(g, g.active, make_key(*g.machine, g.depth, pc)); }

void stop_lane(Group& g, uint32_t lane, const Event& event) {
  g.runnable &= ~(uint64_t{1} << lane);
  g.lane_key[lane] = make_key(*g.machine, g.depth, event.uop);
  g.events->push_back(event);
}

uint32_t schedule(Group& g) {
  const bool were_together = (g.runnable & ~g.active) == 0;
  if (were_together || g.aging || g.patience <= 0) g.patience = kPatience << g.turns;
  g.aging = false;
  g.active = 0;
  const uint64_t key = best_waiting_key(g);
  if (g.runnable == 0) return kNoUop;
  return activate(g, key);
}

uint32_t schedule_turn(Group& g) {
  const uint64_t waiting = g.runnable & ~g.active;
  if (waiting == 0) return schedule(g);
  const uint64_t after = g.turn_lane >= 63 ? 0 : waiting & (~uint64_t{0} << (g.turn_lane + 1));
  g.turn_lane = static_cast<uint32_t>(std::countr_zero(after ? after : waiting));
  const uint32_t pc = activate(g, g.lane_key[g.turn_lane]);
  g.aging = true;
  g.patience = kPatience;
  g.turns = std::min(g.turns + 1, kMaxDoublings);
  g.turn_depth = g.depth;
  return pc;
}

uint32_t schedule_after_wait(Group& g) {
  const int64_t patience = kShortTurn << g.waits;
  const int waits = std::min(g.waits + 1, kMaxShortDoublings);
  const uint32_t pc = schedule_turn(g);
  if (g.aging) {
    g.patience = patience;
    g.waits = waits;
  }
  return pc;
}

uint32_t schedule_slice(Group& g) {
  const uint64_t were_active = g.active & g.runnable;
  if (g.patience > 0 && g.aging && were_active != 0)
    return activate(g, g.lane_key[std::countr_zero(were_active)]);
  return g.patience > 0 || g.aging ? schedule(g) : schedule_after_wait(g);
}

void stop_at_limit(Group& g) {
  flush_epochs(g);
  for_each_lane(g.runnable, [&](uint32_t lane) {
    if (g.lane_tally[lane][kInsnCount] < g.machine->max_instructions) return;
    const uint32_t pc = key_pc(*g.machine, g.lane_key[lane]);
    stop_lane(g, lane, {.core = g.first_core + lane, .status = CoreStatus::kLimit, .uop = pc});
  });
}

int64_t instructions_to_limit(Group& g) {
  if (g.machine->max_instructions == 0) return INT64_MAX;
  flush_epochs(g);
  int64_t least = INT64_MAX;
  for_each_lane(g.runnable, [&](uint32_t lane) {
    least = std::min(least, static_cast<int64_t>(g.machine->max_instructions - g.lane_tally[lane][kInsnCount]));
  });
  return least;
}

}  // namespace gpusim::simd
