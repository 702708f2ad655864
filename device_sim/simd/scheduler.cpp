#include "device_sim/simd/scheduler.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "device_sim/core/interleaving.h"
#include "device_sim/simd/grouped_threads.h"
#include "device_sim/simd/run_alone.h"
#include "device_sim/simd/watched.h"

namespace gpusim::simd {

namespace {

constexpr uint64_t kTurn = 4096;  // instructions of a group in one go

void pause_processor() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

// How many instructions the only core of a group executed that synchronise.
uint64_t synchronising(const Group& g) {
  constexpr auto kClass = static_cast<size_t>(InsnClass::kParallelism);
  uint64_t count = g.lane_tally[0][kClass];
  for (const BlockTally& epoch : g.epochs) count += epoch.counts[kClass];
  return count;
}

}  // namespace

void Scheduler::configure(const MachineConfig& config) {
  seed_ = config.seed;
  cores_ = config.cores;
  is_memory_ours_ = config.linear_storage == nullptr;
  slices_ = 0;
  pace_ = {};
  turn_of_many_ = {};
  is_shared_ = config.memory_model != MemoryModel::kPrivate;
  workers_ = std::vector<Worker>(std::max(config.threads, 1u));
}

void Scheduler::set_blocks(size_t blocks) {
  for (Worker& w : workers_) w.blocks.resize(blocks, machine_.counts_lanes);
}

void Scheduler::reset() {
  rests_.assign(groups_.size(), Rest{});
  awake_.clear();
  was_ended_ = false;
  if (turn_count_ != groups_.size()) {
    turn_count_ = groups_.size();
    turns_ = std::make_unique<Turn[]>(turn_count_);
  }
  look_again();
}

void Scheduler::look_again() {
  for (size_t i = 0; i < groups_.size(); ++i) rest(i, false);
}

BlockCounter& Scheduler::blocks() {
  BlockCounter& all = workers_.front().blocks;
  for (size_t w = 1; w < workers_.size(); ++w) all.take_over(workers_[w].blocks);
  return all;
}

uint64_t Scheduler::alone_instructions() const {
  uint64_t sum = 0;
  for (const Worker& w : workers_) sum += w.workspace.alone;
  return sum;
}

bool Scheduler::is_due(size_t group) const {
  // To look at 64 words takes time: not every slice.
  constexpr uint64_t kSlices = 16;
  const Rest& r = rests_[group];
  switch (r.state) {
    case Rest::State::kIdle:
      return false;
    case Rest::State::kAwake:
      return true;
    case Rest::State::kWord:
      return slices_ >= r.until || simd::has_event(r.watch, machine_.memory);
    case Rest::State::kEvents:
      return slices_ >= r.until || ((slices_ + group) % kSlices == 0 && has_event(groups_[group]));
    case Rest::State::kPolling:
      return slices_ >= r.until;
  }
  return true;
}

bool Scheduler::is_blocked(size_t group) const {
  return machine_.ctas != nullptr && machine_.ctas->blocked(groups_[group]) != 0;
}

std::atomic<bool>& Scheduler::taken(size_t group) {
  return turns_[machine_.ctas != nullptr ? machine_.ctas->team_of(group) : group].taken;
}

void Scheduler::choose_awake() {
  const size_t last = awake_.empty() ? 0 : awake_.front();
  awake_.clear();
  for (uint32_t i = 0; i < rests_.size(); ++i)
    if (is_due(i) || is_blocked(i)) awake_.push_back(i);
  // One that has been handed what it waits for; most often it is a neighbour.
  for (size_t k = 0; k < rests_.size() && awake_.empty(); ++k) {
    const size_t i = (last + k) % rests_.size();
    if (rests_[i].state == Rest::State::kEvents && has_event(groups_[i]))
      awake_.push_back(static_cast<uint32_t>(i));
  }
  // Then those look for themselves that cannot be looked at from outside, or else all.
  const auto wake_where = [&](auto is_wanted) {
    for (uint32_t i = 0; i < rests_.size(); ++i)
      if (is_wanted(rests_[i].state)) awake_.push_back(i);
  };
  if (awake_.empty()) wake_where([](Rest::State s) { return s == Rest::State::kPolling; });
  if (awake_.empty()) wake_where([](Rest::State s) { return s != Rest::State::kIdle; });
  if (seed_ && !awake_.empty()) {
    const uint64_t first = mixed(seed_, slices_, cores_) % awake_.size();
    std::rotate(awake_.begin(), awake_.begin() + static_cast<std::ptrdiff_t>(first), awake_.end());
  }
}

// After a slice of the group. `in_vain`: it did nothing but look whether it can go on.
void Scheduler::rest(size_t group, bool in_vain) {
  const Group& g = groups_[group];
  Rest& r = rests_[group];
  r.rounds = in_vain ? r.rounds + 1 : 0;
  r.until = slices_ + slices_to_sleep(r.rounds);
  if (g.runnable != 0) {
    r.state = g.gave_way && in_vain ? Rest::State::kPolling : Rest::State::kAwake;
  } else if (g.waiting == 0) {
    r.state = Rest::State::kIdle;
  } else if (g.watchers == g.waiting && g.watch.word) {
    r.state = Rest::State::kWord;
    r.watch = g.watch;
  } else {
    r.state = Rest::State::kEvents;
  }
}

// By what the groups did when they last ran: often one works and others only look at a flag.
bool Scheduler::is_worth_threads() const {
  if (workers_.size() == 1) return false;
  // Handing groups to threads costs as much time as some thousand instructions of a group.
  constexpr uint64_t kWorthThreads = 4096;
  uint64_t all = 0, most = 0;
  for (const uint32_t i : awake_) {
    all += rests_[i].used;
    most = std::max(most, rests_[i].used);
  }
  return all - most >= kWorthThreads;
}

// Groups that stay close together find each other's data in the caches, and the host hears of a
// lane's system call before its neighbours spin for the rest of the slice. Cores that are groups of
// their own mostly work on data of their own: a short turn would end before that is in the caches.
// Between turns the clock and hot blocks are looked at. Seeds have lengths of their own.
uint64_t Scheduler::turn_length(uint64_t instructions) const {
  constexpr uint64_t kTurnAlone = 4 * kTurn, kTurnOfOne = 16 * kTurn;
  if (seed_ != 0) return instructions;
  if (!groups_.is_of_one()) return std::min(instructions, kTurn);
  if (awake_.size() > 1) return std::min(instructions, turn_of_many_.length());
  return std::min(instructions, clock_.has_limit() ? kTurnAlone : kTurnOfOne);
}

void Scheduler::begin_round() {
  ++slices_;
  is_new_ = true;
  if (std::exchange(was_ended_, false)) {
    // The rest of a slice goes on, with the groups that had no turn in it.
    std::erase_if(awake_, [this](uint32_t i) {
      return turns_[i].left.load(std::memory_order_relaxed) == 0;
    });
    is_new_ = awake_.empty();
  }
  if (is_new_) choose_awake();
}

uint64_t Scheduler::run_round(uint64_t instructions, std::vector<Event>& events,
                              const AfterTurn& after_turn) {
  // What is left of a slice has not run in it: its last use says nothing.
  if (is_new_) is_worth_threads_ = is_worth_threads();
  workers_now_ =
      is_worth_threads_ && pace_.together() ? std::min(workers_.size(), awake_.size()) : 1;
  // The caller's own memory is seen by the caller's threads, files that are mapped by processes.
  machine_.is_alone = workers_now_ == 1 && is_memory_ours_;
  turn_length_ = turn_length(instructions);
  after_turn_ = workers_now_ == 1 && after_turn ? &after_turn : nullptr;
  const bool is_of_many = groups_.is_of_one() && is_shared_;
  for (const uint32_t i : awake_) {
    rests_[i].used = 0;
    if (is_of_many) rests_[i].synchronised = synchronising(groups_[i]);
    if (!is_new_) continue;
    turns_[i].left.store(instructions, std::memory_order_relaxed);
    turns_[i].was_chosen = true;
  }
  const auto start = std::chrono::steady_clock::now();
  if (workers_now_ == 1) {
    run_turns(0);
  } else {
    tbb::task_arena arena(static_cast<int>(workers_now_));
    arena.execute([&] {
      tbb::parallel_for(
          size_t{0}, workers_now_, [&](size_t w) { run_turns(w); }, tbb::static_partitioner());
    });
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  uint64_t used = 0, atomics = 0;
  for (const uint32_t i : awake_) used += rests_[i].used;
  if (is_of_many) atomics = note_shares(used);
  for (Worker& w : workers_) {
    events.insert(events.end(), w.events.begin(), w.events.end());
    w.events.clear();
    atomics += std::exchange(w.workspace.atomics, 0);
  }
  if (is_worth_threads_) pace_.note(workers_now_ > 1, used, atomics, time);
  return used;
}

uint64_t Scheduler::note_shares(uint64_t used) {
  TurnOfMany::Share instructions{.all = used, .busiest = 0}, synchronised{};
  size_t ran = 0;
  for (const uint32_t i : awake_) {
    if (rests_[i].used == 0) continue;
    ++ran;
    const uint64_t now = synchronising(groups_[i]) - rests_[i].synchronised;
    synchronised.all += now;
    if (rests_[i].used <= instructions.busiest) continue;
    instructions.busiest = rests_[i].used;
    synchronised.busiest = now;
  }
  turn_of_many_.note(ran, instructions, synchronised);
  return synchronised.all;
}

// Brings into the cache what a group touches first in its slice: of many, all have left it since
// the last.
void Scheduler::fetch_ahead(size_t group) const {
  const auto fetch = [](const void* from, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += 64)
      __builtin_prefetch(static_cast<const char*>(from) + at, /*to be written*/ 1);
  };
  const Group& g = groups_[group];
  const size_t slots = g.slot_count;
  fetch(&g, offsetof(Group, kind) + slots);
  fetch(g.base, slots * sizeof g.base[0]);
  fetch(g.stride, slots * sizeof g.stride[0]);
  fetch(g.lane_key, sizeof g.lane_key);
  fetch(&g.epochs, sizeof g.epochs[0]);
  fetch(&g.epoch_mask, sizeof g.epoch_mask);
}

void Scheduler::run_turns(size_t self) {
  constexpr int kSpins = 256;  // before others may have the processor
  Worker& worker = workers_[self];
  const size_t count = awake_.size();
  const size_t begin = count * self / workers_now_, end = count * (self + 1) / workers_now_;
  const bool is_of_many = seed_ == 0 && groups_.is_of_one() && count > 1;
  worker.turn_length = turn_length_;
  for (int in_vain = 0;;) {
    const bool is_quiet = !does_another_run(worker);
    worker.missed = false;
    size_t ran = 0;
    for (size_t k = begin; k < end; ++k) {
      if (k + 2 < end) fetch_ahead(awake_[k + 2]);
      ran += run_turn(awake_[k], worker);
    }
    for (size_t k = end; ran == 0 && k < begin + count; ++k)
      ran += run_turn(awake_[k < count ? k : k - count], worker);
    if (ran != 0) {
      in_vain = 0;
      if (is_of_many) worker.turn_length = turn_of_many_.length(end - begin, ran);
      continue;
    }
    worker.runs.store(false, std::memory_order_release);
    // Groups that run elsewhere may yet open a barrier.
    if (is_quiet && !worker.missed) return;
    if (++in_vain > kSpins)
      std::this_thread::yield();
    else
      pause_processor();
  }
}

bool Scheduler::does_another_run(const Worker& self) const {
  for (size_t w = 0; w < workers_now_; ++w)
    if (&workers_[w] != &self && workers_[w].runs.load(std::memory_order_acquire)) return true;
  return false;
}

bool Scheduler::run_turn(size_t group, Worker& worker) {
  Turn& turn = turns_[group];
  if (turn.left.load(std::memory_order_relaxed) == 0) return false;
  if (workers_now_ == 1) return run_taken(group, worker);
  std::atomic<bool>& is_taken = taken(group);
  if (is_taken.load(std::memory_order_relaxed) ||
      is_taken.exchange(true, std::memory_order_acquire)) {
    worker.missed = true;
    return false;
  }
  const bool ran = run_taken(group, worker);
  is_taken.store(false, std::memory_order_release);
  return ran;
}

bool Scheduler::run_taken(size_t group, Worker& worker) {
  Turn& turn = turns_[group];
  const uint64_t left = turn.left.load(std::memory_order_relaxed);
  if (left == 0 || clock_.is_over() || (!std::exchange(turn.was_chosen, false) && !is_due(group)))
    return false;
  if (!worker.runs.load(std::memory_order_relaxed)) worker.runs.store(true);
  const size_t events = worker.events.size();
  const uint64_t most = std::min(left, worker.turn_length);
  const bool is_by_steps =
      seed_ == 0 && !groups_.is_of_one() && groups_.size() >= TurnBySteps::kGroups;
  const uint64_t used = is_by_steps ? run_by_steps(group, most, worker)
                                    : run_in_slice(group, most, worker);
  Rest& rest = rests_[group];
  rest.used += used;
  if (after_turn_ != nullptr) (*after_turn_)(used);
  // The host looks after events before their cores' neighbours go on for long.
  const bool is_over = worker.events.size() != events ||
                       (rest.state == Rest::State::kIdle && !is_blocked(group)) ||
                       rest.state == Rest::State::kPolling;
  turn.left.store(is_over ? 0 : left - std::min(left, used + 1), std::memory_order_relaxed);
  if ((worker.since_look += used + 1) >= kTurn) {
    worker.since_look = 0;
    clock_.look();
  }
  return true;
}

// A turn of lanes in lockstep.
uint64_t Scheduler::run_by_steps(size_t group, uint64_t most, Worker& worker) {
  TurnBySteps& turn = rests_[group].turn;
  const uint64_t length = turn.length(most);
  if (!turn.is_due()) {
    const uint64_t used = run_in_slice(group, length, worker);
    turn.note(used >= length, false, false);
    return used;
  }
  const Neighbours before(groups_[group]);
  const uint64_t used = run_in_slice(group, length, worker);
  const bool is_full = used >= length;
  turn.note(is_full, true,
            is_full && TurnBySteps::is_far(before, Neighbours(groups_[group]), used));
  return used;
}

uint64_t Scheduler::run_in_slice(size_t group, uint64_t instructions, Worker& worker) {
  // A look at a flag, and giving way again.
  constexpr uint64_t kOneLook = kGiveWayCost + 32;
  Group& g = groups_[group];
  g.events_before = std::exchange(g.events_now, Watch::read(machine_.memory.events));
  const bool had_event = simd::wake(g);
  if (g.runnable == 0) wake_all(g);
  const uint64_t used = seed_ != 0 ? run_apart(g, instructions, worker)
                                   : run_group(g, instructions, worker);
  rest(group, seed_ == 0 && !had_event && used < kOneLook);
  if (machine_.ctas != nullptr)
    machine_.ctas->take_released(group, [&](size_t other) {
      if (other != group) rest(other, false);
    });
  return used;
}

// Some lanes at a time, for some of the slice at a time.
uint64_t Scheduler::run_apart(Group& g, uint64_t instructions, Worker& worker) {
  constexpr uint64_t kRounds = 4;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t slice = slices_ * kRounds + round;
    const uint64_t random = mixed(seed_, slice, g.first_core);
    const uint64_t one = uint64_t{1} << (random % g.width);
    const uint64_t some = round == 0 ? ~uint64_t{0} : random & 64 ? one : random * random;
    const uint64_t held = g.runnable & some ? g.runnable & ~some : 0;
    g.runnable &= ~held;
    run_group(g, jittered(seed_, slice, cores_ + g.first_core, instructions), worker);
    g.runnable |= held;
  }
  return instructions;
}

uint64_t Scheduler::run_group(Group& g, uint64_t instructions, Worker& worker) {
  // Tallies of an epoch are 32 bits wide and stay there until somebody asks.
  constexpr uint32_t kMost = uint32_t{1} << 30;
  const uint32_t most = machine_.counts_lanes ? BlockCounter::kMostSteps : kMost;
  const auto all = static_cast<int64_t>(std::min<uint64_t>(instructions, most));
  int64_t left = all;
  g.block_counts = worker.blocks.data();
  g.workspace = &worker.workspace;
  g.events = &worker.events;
  g.gave_way = g.lacks_code = false;
  if (g.unflushed >= kMost) flush_epochs(g);
  // Lanes whose block ended in an event when they reached the limit stop now.
  if (machine_.max_instructions) stop_at_limit(g);
  while (left > 0 && g.runnable != 0 && !g.gave_way && !g.lacks_code) {
    const int64_t budget = std::min(left, instructions_to_limit(g));
    g.budget = budget;
    begin_lanes(g);
    simd::run_group(g);
    if (g.width == 1) settle_alone(g);
    if (machine_.counts_lanes) settle_lanes(g);
    left -= budget - g.budget;
    if (machine_.max_instructions) stop_at_limit(g);
  }
  const auto used = static_cast<uint64_t>(all - left);
  g.steps += used;
  g.unflushed += used;
  begin_lanes(g);
  worker.blocks.note_steps(used);
  return used;
}

// What decides when a group's lanes run, and when the group does; where lanes are is not in here.
template <class Archive>
void Scheduler::describe_groups(Archive& a) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& g = groups_[i];
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
    a(g.calls.given);
    a(g.calls.lane);
    a(g.watchers);
    a(machine_.memory, g.watch);
    for_each_lane(g.waiting & ~g.watchers & g.exists,
                  [&](uint32_t lane) { a(machine_.memory, g.watches[lane]); });
    a(g.events_now);
    a(g.events_before);
    a(g.slices);
    a(g.flushed_instructions);
    a(g.steps);
    a(g.diverged);
    a(g.asleep);
    Rest& rest = rests_[i];
    auto state = static_cast<uint8_t>(rest.state);
    a(state);
    rest.state = static_cast<Rest::State>(state);
    a(rest.rounds);
    a(rest.until);
    a(rest.used);
    a(machine_.memory, rest.watch);
    rest.turn.describe(a);
  }
}

void Scheduler::save(StateWriter& out) {
  out(slices_);
  out(awake_.empty() ? uint32_t{0} : awake_.front());
  turn_of_many_.describe(out);
  describe_groups(out);
}

bool Scheduler::load(StateReader& in) {
  uint32_t last = 0;
  in(slices_);
  in(last);
  if (last >= groups_.size()) return false;
  awake_.assign(1, last);
  turn_of_many_.describe(in);
  describe_groups(in);
  if (!in.ok || !turn_of_many_.is_valid()) return false;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (((g.runnable | g.waiting | g.active) & ~g.exists) || (g.runnable & g.waiting) ||
        (g.watchers & ~g.waiting) || g.turns.given < 0 || g.turns.given > kMaxDoublings ||
        g.turns.waits < 0 || g.turns.waits > kMaxShortDoublings || g.turns.lane >= kMaxLanes ||
        !g.calls.is_sound() || rests_[i].state > Rest::State::kPolling ||
        !rests_[i].turn.is_valid())
      return false;
  }
  return true;
}

}  // namespace gpusim::simd
