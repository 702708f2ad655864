#include "device_sim/simd/group.h"

#include <algorithm>

#include "device_sim/simd/lane_keys.h"
#include "device_sim/simd/next_turn.h"
#include "device_sim/simd/side_counts.h"
#include "device_sim/simd/watched.h"

namespace gpusim::simd {

namespace {

void flush(Group& g, size_t epoch) {
  BlockTally& tally = g.epochs[epoch];
  if (tally.counts[kInsnCount] == 0) return;
  g.flushed_instructions += uint64_t{tally.counts[kInsnCount]} *
                            static_cast<uint64_t>(std::popcount(g.epoch_mask[epoch]));
  g.has_tallies = true;
  for_each_lane(g.epoch_mask[epoch], [&](uint32_t lane) {
    for (size_t c = 0; c < 16; ++c) g.lane_tally[lane][c] += tally.counts[c];
  });
  tally = BlockTally{};
}

// After a change of the active or the runnable lanes.
void weigh(Group& g) {
  const auto count = [](uint64_t mask) { return static_cast<uint32_t>(std::popcount(mask)); };
  g.weight = count(g.active);
  if (!g.machine->counts_lanes) return;
  settle_lanes(g);
  g.weight |= uint64_t{count(g.runnable)} << 32;
  g.diverged_lanes = count(g.runnable & ~g.active);
  g.asleep_lanes = count(g.waiting);
}

uint64_t best_waiting_key(Group& g) { return Lanes(g).least_key(g.runnable & ~g.active); }

uint64_t runnable_with_rank(const Group& g, uint32_t rank) {
  const uint64_t apart = g.runnable & ~g.joint;
  const uint64_t mask = apart == 0 ? 0 : lanes_with_rank(g.lane_key, rank) & apart;
  return key_rank(g.joint_key) == rank ? mask | (g.runnable & g.joint) : mask;
}

}  // namespace

uint64_t Lanes::least_key(uint64_t mask) const {
  const uint64_t apart = mask & ~g_.joint;
  const uint64_t least = apart == 0 ? kNoKey : simd::least_key(g_.lane_key, apart);
  return mask & g_.joint ? std::min(least, g_.joint_key) : least;
}

uint32_t Lanes::activate(uint64_t key) {
  g_.depth = key_depth(key);
  set_active(g_, runnable_with_rank(g_, key_rank(key)));
  g_.wait_key = best_waiting_key(g_);
  return key_pc(*g_.machine, key);
}

void flush_epochs(Group& g) {
  flush_sides(g);
  for (size_t e = 0; e < kEpochs; ++e) flush(g, e);
  g.unflushed = 0;
}

namespace {
// Of the epochs alone, up to now.
struct EpochClocks {
  explicit EpochClocks(const Group& g)
      : ticks(g.machine->memory.class_ticks),
        is_even(ticks != nullptr &&
                std::all_of(ticks, ticks + kInsnCount, [&](uint64_t t) { return t == *ticks; })) {
    for (size_t e = 0; e < kEpochs; ++e)
      if (g.epochs[e].counts[kInsnCount] != 0) word[e] = word_of(g.epochs[e].counts);
  }
  // Where all classes take as long, a sum over them is not needed.
  template <class Counts>
  uint64_t word_of(const Counts& counts) const {
    const uint64_t all = counts[kInsnCount];
    return is_even ? ClockWord::pack(*ticks * all, all) : clock_word(ticks, counts);
  }
  uint64_t of(const Group& g, uint32_t lane) const {
    const uint64_t flushed = word_of(g.lane_tally[lane]);
    uint64_t time = ClockWord::ticks(flushed), count = ClockWord::count(flushed);
    for (size_t e = 0; e < kEpochs; ++e) {
      if (word[e] == 0 || !(g.epoch_mask[e] >> lane & 1)) continue;
      time += ClockWord::ticks(word[e]);
      count += ClockWord::count(word[e]);
    }
    return ClockWord::pack(time, count);
  }
  const uint64_t* const ticks;
  const bool is_even;
  std::array<uint64_t, kEpochs> word = {};
};
}  // namespace

uint64_t clock_of_lane(Group& g, uint32_t lane) {
  flush_sides(g);
  return EpochClocks(g).of(g, lane);
}

void note_clocks(Group& g) {
  flush_sides(g);
  const EpochClocks clocks(g);
  const MemoryView& m = g.machine->memory;
  for_each_lane(g.active, [&](uint32_t lane) { m.note(g.core(lane), clocks.of(g, lane)); });
}

void settle_lanes(Group& g) {
  const uint64_t before = g.settled;
  begin_lanes(g);
  g.diverged += (g.settled - before) * g.diverged_lanes;
  g.asleep += (g.settled - before) * g.asleep_lanes;
}

void set_active(Group& g, uint64_t mask) {
  g.active = mask;
  weigh(g);
  for (size_t e = 0; e < kEpochs; ++e) {
    if (g.epoch_mask[e] == mask) {
      g.epoch = &g.epochs[e];
      return;
    }
  }
  const size_t e = g.next_epoch;
  g.next_epoch = (e + 1) % kEpochs;
  flush(g, e);
  g.epoch_mask[e] = mask;
  g.epoch = &g.epochs[e];
}

void set_keys(Group& g, uint64_t mask, uint64_t key) {
  if (g.joint & ~mask) {
    g.joint &= ~mask;
    fill_keys(g.lane_key, mask, key);
  } else {
    g.joint = mask;
    g.joint_key = key;
  }
}

void park(Group& g, uint32_t pc) { set_keys(g, g.active, make_key(*g.machine, g.depth, pc)); }

void stop_lane(Group& g, uint32_t lane, const Event& event) {
  take_out(g, lane);
  set_key(g, lane, make_key(*g.machine, g.depth, event.uop));
  g.events->push_back(event);
}

void stop_lanes(Group& g, uint64_t mask, Event event) {
  g.runnable &= ~mask;
  g.waiting &= ~mask;
  g.watchers &= ~mask;
  set_keys(g, mask, make_key(*g.machine, g.depth, event.uop));
  while (mask != 0) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    event.core = g.core(lane);
    event.count = g.cores ? 1 : static_cast<uint32_t>(std::countr_one(mask >> lane));
    g.events->push_back(event);
    mask &= ~(~uint64_t{0} >> (64 - event.count) << lane);
  }
}

namespace {

bool may_be_read(const uint64_t* word, const MemoryView& memory) {
  const auto at = reinterpret_cast<uintptr_t>(word);
  const uint64_t in_linear = at - reinterpret_cast<uintptr_t>(memory.linear);
  if (in_linear < memory.linear_size)
    return (memory.linear_pages[in_linear >> kPageShift] & kRead) != 0;
  const uint64_t in_windows = at - reinterpret_cast<uintptr_t>(memory.windows);
  if (memory.lanes_shift != 0) return true;
  const uint64_t window = uint64_t{1} << memory.window_shift;
  const auto core = static_cast<uint32_t>(in_windows >> memory.window_shift);
  const uint64_t page = memory.window_page_index(core, in_windows & (window - 1));
  return (memory.window_pages[page] & kRead) != 0;
}

uint64_t lanes_with_event(const Group& g) {
  const MemoryView& memory = g.machine->memory;
  uint64_t mask = g.watchers && has_event(g.watch, memory) ? g.watchers : 0;
  for_each_lane(g.waiting & ~g.watchers, [&](uint32_t lane) {
    if (has_event(g.watches[lane], memory)) mask |= uint64_t{1} << lane;
  });
  return mask;
}

void wake_lanes(Group& g, uint64_t mask) {
  g.waiting &= ~mask;
  g.watchers &= ~mask;
  g.runnable |= mask;
  g.wait_key = best_waiting_key(g);
  weigh(g);
}

}  // namespace

void add_watch(Group& g, uint64_t mask, const Watch& watch) {
  if (g.watchers == 0) g.watch = watch;
  if (watch == g.watch)
    g.watchers |= mask;
  else
    for_each_lane(mask, [&](uint32_t lane) { g.watches[lane] = watch; });
  g.waiting |= mask;
}

void wait_for_event(Group& g, Slot monitor) {
  const auto data = static_cast<Slot>(monitor + 1);
  const auto wait = [&](uint64_t mask) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    Watch w;
    if (!start_watch(g.machine->memory, g.core(lane), g.get_lane(monitor, lane),
                     g.get_lane(data, lane), g.events_before, w))
      return;
    add_watch(g, mask, w);
  };
  const bool in_windows = g.get_lane(monitor, 0) - g.machine->memory.linear_base >=
                          g.machine->memory.linear_size;
  if (g.kind[monitor] == kUniform && g.kind[data] == kUniform && !in_windows)
    wait(g.active);
  else
    for_each_lane(g.active, [&](uint32_t lane) { wait(uint64_t{1} << lane); });
  g.runnable &= ~g.waiting;
}

bool has_event(const Watch& watch, const MemoryView& memory) {
  return (watch.word && !may_be_read(watch.word, memory)) || watch.has_event(memory);
}

bool has_event(const Group& g) { return lanes_with_event(g) != 0; }

bool wake(Group& g) {
  const uint64_t mask = lanes_with_event(g);
  if (mask) wake_lanes(g, mask);
  return mask != 0;
}

void wake_all(Group& g) { wake_lanes(g, g.waiting); }

uint32_t schedule(Group& g) {
  Lanes lanes(g);
  return gpusim::schedule(g.turns, lanes);
}
uint32_t schedule_after_wait(Group& g) {
  Lanes lanes(g);
  return gpusim::schedule_after_wait(g.turns, lanes);
}
uint32_t schedule_slice(Group& g) {
  const uint64_t were_active = g.active & g.runnable;
  const Turns& t = g.turns;
  if (t.patience == kNextTurn || g.calls.given == CallTurns::kOthersNext) {
    if (g.calls.given == CallTurns::kOthersNext) g.calls.given = 0;
    Lanes lanes(g);
    return schedule_turn(g.turns, lanes);
  }
  if (t.patience > 0 && t.aging && were_active != 0) {
    Lanes lanes(g);
    return activate_lanes(g.turns, lanes, g.key(lowest_bit(were_active)));
  }
  return t.patience > 0 || t.aging ? schedule(g) : schedule_after_wait(g);
}

void stop_at_limit(Group& g) {
  flush_epochs(g);
  for_each_lane(g.runnable | g.waiting, [&](uint32_t lane) {
    if (g.lane_tally[lane][kInsnCount] < g.machine->max_instructions) return;
    const uint32_t pc = key_pc(*g.machine, g.key(lane));
    stop_lane(g, lane, {.core = g.core(lane), .status = CoreStatus::kLimit, .uop = pc});
  });
}

int64_t instructions_to_limit(Group& g) {
  if (g.machine->max_instructions == 0) return INT64_MAX;
  flush_epochs(g);
  int64_t least = INT64_MAX;
  for_each_lane(g.runnable | g.waiting, [&](uint32_t lane) {
    least = std::min(least, static_cast<int64_t>(g.machine->max_instructions - g.lane_tally[lane][kInsnCount]));
  });
  return least;
}

}  // namespace gpusim::simd
