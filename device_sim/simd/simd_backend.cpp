#include "device_sim/simd/simd_backend.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "device_sim/core/interleaving.h"

namespace gpusim {

using simd::Group;
using simd::kMaxLanes;

namespace {

// Steps of groups that a word of two 32-bit sums of lanes holds: twice these, as a group may add as
// many before somebody looks.
constexpr uint32_t kMostCountedSteps = uint32_t{1} << 24;
constexpr uint64_t kTurn = 4096;  // instructions of a group in one go


void pause_processor() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool SimdBackend::available([[maybe_unused]] std::string* why_not) {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2")) {
    *why_not = "it needs a processor with AVX2, FMA and BMI2; use --backend scalar";
    return false;
  }
#endif
  return true;
}

std::string SimdBackend::device() const {
  return std::string("host CPU, ") + simd::target_name() + ", " +
         std::to_string(simd::lanes_per_vector()) + " lanes per vector";
}

void SimdBackend::configure(const Module& module, const MachineConfig& config) {
  if (config.group_width == 0 || config.group_width > kMaxLanes ||
      !std::has_single_bit(config.group_width))
    throw std::runtime_error("the group width must be a power of two from 1 to 64, not " +
                             std::to_string(config.group_width));
  width_ = config.group_width;
  // Neighbouring lanes' windows lie side by side; a core alone has its window in one piece.
  configure_common(module, config, width_ == 1 || config.cores == 1 ? 0 : simd::kLanesShift);
  for (Storage& storage : storages_) storage = {};
  lay_out();
  workers_ = std::vector<Worker>(std::max(config.threads, 1u));
  for (Worker& w : workers_) w.blocks.resize(module.blocks.size(), config.count_lanes);
  gear_.reset();
  if (may_part()) {
    memory_.reserve_other_layout();
    gear_ = new_gear();
  }
  turns_ = std::make_unique<Turn[]>(gear_ ? config.cores : groups_.size());
  pace_ = {};
  slices_ = next_mark_ = 0;
  regroupings_ = rearrangements_ = 0;
  make_code_caches();
  order_ = ReconvergenceOrder(/*ranks=*/!is_of_one());
  order_.compute(module);
  block_tallies_.clear();
  view_machine();
  if (config.native_after == 0) mark_hot_blocks(/*used=*/0);
  make_groups(/*is_new=*/true);
}

// Whether the cores of a group may run alone instead. Those who look at groups, or at what cores do
// by turns, want them as they were asked for.
bool SimdBackend::may_part() const {
  constexpr uint32_t kMostCores = 4096;  // each has a group of its own then
  const bool is_wanted = config_.regroup && !is_of_one() && config_.cores <= kMostCores &&
                         config_.memory_model == MemoryModel::kShared &&
                         config_.linear_storage == nullptr && !config_.count_lanes &&
                         config_.journal_words == 0 && config_.seed == 0 &&
                         config_.native_after != MachineConfig::kNeverNative;
  return is_wanted && make_engine() != nullptr;  // interpreted alone they would be slow
}

simd::Gear SimdBackend::new_gear() const {
  // Of a step, between the 8 and 27 that were measured without AVX-512
  // (docs/adr/0028-two-gears.md).
  const int64_t step_cost = simd::TraceCompiler::available() ? 8 : 16;
  // Of changing over: all registers move, and whatever was touched of all windows.
  constexpr int64_t kAlways = 500'000, kPerCore = 4000, kPerPage = 10;
  const auto pages = static_cast<int64_t>(windows_storage_bytes(memory_.view()) >> kPageShift);
  const int64_t price = kAlways + kPerCore * config_.cores + kPerPage * pages;
  return {step_cost, config_.native_after == 0 ? 1 : price};  // 0: as often as can be
}

std::unique_ptr<native::Engine> SimdBackend::make_engine() const {
  return native::Engine::make(*module_, memory_.view(),
                              1 + (config_.count_lanes ? uint64_t{1} << 32 : 0));
}

void SimdBackend::make_code_caches() {
  native_.reset();
  other_native_.reset();
  natively_ = 0;
  interpreted_ = 0;
  if (config_.native_after == MachineConfig::kNeverNative) return;
  std::unique_ptr<native::Engine> alone;
  // Rights to memory of the caller's change without notice.
  if (is_of_one() && config_.linear_storage == nullptr) alone = make_engine();
  if (!alone && !simd::TraceCompiler::available()) return;
  native_ = std::make_unique<simd::CodeCache>();
  native_->set_alone(std::move(alone));
}

// Groups of one core, or of as many as was asked for. Cores, registers and memory stay as they are;
// who waits looks again.
void SimdBackend::arrange(bool alone) {
  const std::vector<CoreSnapshot> all = cores();
  const uint32_t runnable = runnable_;  // with cores whose events the slice has yet to report
  std::vector<uint64_t> values(size_t{module_->slot_count} * config_.cores);
  const auto values_of = [&](size_t s) {
    return std::span(values).subspan(s * config_.cores, config_.cores);
  };
  for (size_t s = 0; s < module_->slot_count; ++s) slots(static_cast<Slot>(s), values_of(s));

  width_ = alone ? 1 : config_.group_width;
  constexpr int64_t kPerPage = 3000;  // of instructions: its words go to places of their own
  const uint64_t pages = memory_.interleave(alone ? 0 : simd::kLanesShift);
  if (config_.native_after != 0) gear_->note_change(kPerPage * static_cast<int64_t>(pages));
  std::swap(native_, other_native_);
  if (alone && !native_) {
    if (std::unique_ptr<native::Engine> engine = make_engine()) {
      const MemoryView& memory = memory_.view();
      engine->permissions_changed(memory.linear_base, memory.linear_size);
      engine->permissions_changed(memory.window_base, memory.windows_size);
      native_ = std::make_unique<simd::CodeCache>();
      native_->set_alone(std::move(engine));
      native_->follow(*module_);
    }
  }
  connect();
  lay_out();
  make_groups(/*is_new=*/false);
  awake_.clear();
  put_cores(all, /*scheduled=*/false);
  runnable_ = runnable;
  for (size_t s = 0; s < module_->slot_count; ++s) set_all_slots(static_cast<Slot>(s), values_of(s));
  ++rearrangements_;
}

// After a slice with so many instructions, of cores alone.
bool SimdBackend::change_gear(uint64_t used, const LaneUse& before) {
  if (!gear_) return false;
  if (width_ == 1) {
    if (!gear_->tries(used, awake_.size())) return false;
    arrange(/*alone=*/false);
  } else {
    const LaneUse now = lane_use();
    if (!gear_->loses(now.instructions - before.instructions, now.steps - before.steps))
      return false;
    arrange(/*alone=*/true);
  }
  return true;
}

void SimdBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = machine_.max_instructions = max_instructions;
  make_groups(/*is_new=*/false);
}

void SimdBackend::lay_out() {
  const uint64_t count = (uint64_t{config_.cores} + width_ - 1) / width_;
  Storage& s = storages_[width_ == 1];
  if (s.groups.data() == nullptr) {
    const uint64_t group_words = uint64_t{module_->slot_count} * kMaxLanes;
    // A group of one core hardly ever uses its rows.
    s.slots = LazyMemory(count * group_words * sizeof(uint64_t), "contexts",
                         width_ == 1 ? Pages::kSmall : Pages::kHuge);
    s.groups = LazyMemory(count * sizeof(Group), "groups of cores", Pages::kHuge);
    s.watches = LazyMemory(count * width_ * sizeof(Watch), "waiting cores");
    s.tallies = LazyMemory(count * width_ * sizeof(ClassCounts), "tallies", Pages::kHuge);
  }
  groups_ = {reinterpret_cast<Group*>(s.groups.data()), count};
}

void SimdBackend::make_groups(bool is_new) {
  const Storage& s = storages_[width_ == 1];
  rests_.assign(groups_.size(), Rest{});
  was_ended_ = false;
  runnable_ = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const bool has_tallies = !is_new && groups_[i].has_tallies;
    Group& g = *new (&groups_[i]) Group();
    g.machine = &machine_;
    g.slot_count = module_->slot_count;
    g.lanes = reinterpret_cast<uint64_t*>(s.slots.data()) + i * g.slot_count * kMaxLanes;
    g.watches = reinterpret_cast<Watch*>(s.watches.data()) + i * width_;
    g.lane_tally = reinterpret_cast<ClassCounts*>(s.tallies.data()) + i * width_;
    if (has_tallies) std::fill_n(g.lane_tally, width_, ClassCounts{});
    g.first_core = static_cast<uint32_t>(i * width_);
    g.width = std::min(width_, config_.cores - g.first_core);
    g.exists = ~uint64_t{0} >> (64 - g.width);
    simd::set_keys(g, g.exists, key_of(0, 0));
    for (const InitialValue& v : module_->initial_values)
      simd::set_compact(g, v.slot, {v.value, 0});
  }
  regrouper_.configure(groups_, config_.cores, width_);
}

void SimdBackend::view_machine() {
  // Blocks that are there do not change.
  size_t b = block_tallies_.size();
  block_tallies_.resize(module_->blocks.size());
  for (; b < module_->blocks.size(); ++b) {
    for (size_t c = 0; c < kInsnClassCount; ++c)
      block_tallies_[b].counts[c] = module_->blocks[b].classes[c];
    block_tallies_[b].counts[simd::kInsnCount] = module_->blocks[b].insn_count;
  }
  if (engine()) engine()->module_changed();
  if (native_) native_->follow(*module_);
  if (other_native_) other_native_->follow(*module_);
  connect();
}

// The machine's groups use the code and the memory as they are now.
void SimdBackend::connect() {
  view_code();
  if (native_) code_.uops = native_->uops();
  machine_ = simd::Machine{.code = code_,
                           .native = native_.get(),
                           .memory = memory_.view(),
                           .block_tallies = block_tallies_.data(),
                           .rank = order_.rank().data(),
                           .uop_of_rank = order_.uop_at().data(),
                           .max_instructions = config_.max_instructions,
                           .counts_lanes = config_.count_lanes,
                           .permission_changes = machine_.permission_changes + 1};
}

void SimdBackend::module_changed() {
  const std::vector<uint32_t> former = order_.extend(*module_);
  view_machine();
  if (!former.empty())
    for (Group& g : groups_)
      for (uint32_t lane = 0; lane < kMaxLanes; ++lane) {
        const uint64_t key = g.key(lane);
        simd::set_key(g, lane,
                      simd::make_key(machine_, key_depth(key), former[key_rank(key)]));
      }
  for (Worker& w : workers_) w.blocks.resize(module_->blocks.size(), config_.count_lanes);
}

uint64_t SimdBackend::slot(uint32_t core, Slot slot) {
  return group_of(core).get_lane(slot, lane_of(core));
}

void SimdBackend::set_slot(uint32_t core, Slot slot, uint64_t value) {
  simd::set_lane(group_of(core), slot, lane_of(core), value);
}

void SimdBackend::set_slots(Slot slot, CoreWord value) {
  if (regrouper_.is_mixed()) return CpuBackend::set_slots(slot, value);
  for (Group& g : groups_)
    simd::set_compact(g, slot, {value.of(g.first_core), g.width > 1 ? value.step : 0});
}

void SimdBackend::forget_reach(uint64_t address) {
  ++machine_.permission_changes;
  if (slices_ == 0 || address >= config_.linear_base + config_.linear_size) return;
  for (Group& g : groups_) g.reach[0] = g.reach[1] = {};
}

void SimdBackend::start(uint32_t core, uint32_t uop) {
  stop(core);
  Group& g = group_of(core);
  const uint32_t lane = lane_of(core);
  simd::set_key(g, lane, simd::make_key(machine_, key_depth(g.key(lane)), uop));
  g.runnable |= uint64_t{1} << lane;
  rests_[group_number(core)].state = Rest::State::kAwake;
  ++runnable_;
}

void SimdBackend::start_all(uint32_t uop) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& g = groups_[i];
    const auto key = [&](uint64_t former) {
      return simd::make_key(machine_, key_depth(former), uop);
    };
    if (g.joint == g.exists)
      simd::set_keys(g, g.exists, key(g.joint_key));
    else
      simd::for_each_lane(g.exists, [&](uint32_t l) { simd::set_key(g, l, key(g.key(l))); });
    g.runnable = g.exists;
    g.waiting = g.watchers = 0;
    rests_[i].state = Rest::State::kAwake;
  }
  runnable_ = config_.cores;
}

uint32_t SimdBackend::place(uint32_t core) {
  return simd::key_pc(machine_, group_of(core).key(lane_of(core)));
}

void SimdBackend::stop(uint32_t core) {
  Group& g = group_of(core);
  const uint32_t lane = lane_of(core);
  if (!((g.runnable | g.waiting) >> lane & 1)) return;
  --runnable_;
  simd::take_out(g, lane);
  simd::set_key(g, lane, g.key(lane));  // those that go on stay joint
}

bool SimdBackend::is_due(size_t group) const {
  // To look at 64 words takes time: not every slice.
  constexpr uint64_t kSlices = 16;
  const Rest& r = rests_[group];
  switch (r.state) {
    case Rest::State::kIdle:
      return false;
    case Rest::State::kAwake:
      return true;
    case Rest::State::kWord:
      return slices_ >= r.until || r.watch.has_event(machine_.memory);
    case Rest::State::kEvents:
      return slices_ >= r.until ||
             ((slices_ + group) % kSlices == 0 && simd::has_event(groups_[group]));
    case Rest::State::kPolling:
      return slices_ >= r.until;
  }
  return true;
}

void SimdBackend::choose_awake() {
  const size_t last = awake_.empty() ? 0 : awake_.front();
  awake_.clear();
  for (uint32_t i = 0; i < rests_.size(); ++i)
    if (is_due(i)) awake_.push_back(i);
  // One that has been handed what it waits for; most often it is a neighbour.
  for (size_t k = 0; k < rests_.size() && awake_.empty(); ++k) {
    const size_t i = (last + k) % rests_.size();
    if (rests_[i].state == Rest::State::kEvents && simd::has_event(groups_[i]))
      awake_.push_back(static_cast<uint32_t>(i));
  }
  // Then those look for themselves that cannot be looked at from outside, or else all.
  const auto wake_where = [&](auto is_wanted) {
    for (uint32_t i = 0; i < rests_.size(); ++i)
      if (is_wanted(rests_[i].state)) awake_.push_back(i);
  };
  if (awake_.empty()) wake_where([](Rest::State s) { return s == Rest::State::kPolling; });
  if (awake_.empty()) wake_where([](Rest::State s) { return s != Rest::State::kIdle; });
  if (config_.seed && !awake_.empty()) {
    const uint64_t first = mixed(config_.seed, slices_, config_.cores) % awake_.size();
    std::rotate(awake_.begin(), awake_.begin() + static_cast<std::ptrdiff_t>(first), awake_.end());
  }
}

// After a slice of the group. `in_vain`: it did nothing but look whether it can go on.
void SimdBackend::rest(size_t group, bool in_vain) {
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

// Brings into the cache what a group touches first in its slice: of many, all have left it since
// the last.
void SimdBackend::fetch_ahead(size_t group) const {
  const auto fetch = [](const void* from, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += 64)
      __builtin_prefetch(static_cast<const char*>(from) + at, /*to be written*/ 1);
  };
  const Group& g = groups_[group];
  const size_t slots = module_->slot_count;
  fetch(&g, offsetof(Group, kind) + slots);
  fetch(g.base, slots * sizeof g.base[0]);
  fetch(g.stride, slots * sizeof g.stride[0]);
  fetch(g.lane_key, sizeof g.lane_key);
  fetch(&g.epochs, sizeof g.epochs[0]);
  fetch(&g.epoch_mask, sizeof g.epoch_mask);
}

bool SimdBackend::run_turn(size_t group, Worker& worker) {
  Turn& turn = turns_[group];
  const auto run = [&] {
    const uint64_t left = turn.left.load(std::memory_order_relaxed);
    if (left == 0 || ends_slices() || (!std::exchange(turn.was_chosen, false) && !is_due(group)))
      return false;
    const bool is_alone = workers_now_ == 1;
    if (!is_alone) ++running_;
    const size_t events = worker.events.size();
    const uint64_t used = run_in_slice(group, std::min(left, turn_length_), worker);
    Rest& rest = rests_[group];
    rest.used += used;
    // The host looks after events before their cores' neighbours go on for long.
    const bool is_over = worker.events.size() != events || rest.state == Rest::State::kIdle ||
                         rest.state == Rest::State::kPolling;
    turn.left.store(is_over ? 0 : left - std::min(left, used + 1), std::memory_order_relaxed);
    if (!is_alone) --running_;
    if ((worker.since_look += used + 1) >= kTurn) {
      worker.since_look = 0;
      look_at_clock();
    }
    return true;
  };
  if (turn.left.load(std::memory_order_relaxed) == 0) return false;
  if (workers_now_ == 1) return run();
  if (turn.taken.load(std::memory_order_relaxed) || turn.taken.exchange(true)) {
    worker.missed = true;
    return false;
  }
  const bool ran = run();
  turn.taken.store(false);
  return ran;
}

// The slice of a thread, one of workers_now_: of the groups that are awake it has a share, in which
// it runs one after the other for a turn, again and again. Who finds nobody to run helps out
// elsewhere.
void SimdBackend::run_turns(size_t self) {
  constexpr int kSpins = 256;  // before others may have the processor
  Worker& worker = workers_[self];
  const size_t count = awake_.size();
  const size_t begin = count * self / workers_now_, end = count * (self + 1) / workers_now_;
  for (int in_vain = 0;;) {
    const bool is_quiet = running_ == 0;
    worker.missed = false;
    bool ran = false;
    for (size_t k = begin; k < end; ++k) {
      if (k + 2 < end) fetch_ahead(awake_[k + 2]);
      ran |= run_turn(awake_[k], worker);
    }
    for (size_t k = end; !ran && k < begin + count; ++k)
      ran = run_turn(awake_[k < count ? k : k - count], worker);
    if (ran) {
      in_vain = 0;
      continue;
    }
    // Groups that run elsewhere may yet open a barrier.
    if (is_quiet && !worker.missed) return;
    if (++in_vain > kSpins)
      std::this_thread::yield();
    else
      pause_processor();
  }
}

uint64_t SimdBackend::run_in_slice(size_t group, uint64_t instructions, Worker& worker) {
  // A look at a flag, and giving way again.
  constexpr uint64_t kOneLook = kGiveWayCost + 32;
  Group& g = groups_[group];
  g.events_before = std::exchange(g.events_now, Watch::read(machine_.memory.events));
  const bool had_event = simd::wake(g);
  if (g.runnable == 0) simd::wake_all(g);
  if (config_.seed) {
    run_apart(g, instructions, worker);
    rest(group, false);
    return instructions;
  }
  const uint64_t used = run_group(g, instructions, worker);
  rest(group, !had_event && used < kOneLook);
  return used;
}

// Some lanes at a time, for some of the slice at a time.
void SimdBackend::run_apart(Group& g, uint64_t instructions, Worker& worker) {
  constexpr uint64_t kRounds = 4;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t slice = slices_ * kRounds + round;
    const uint64_t random = mixed(config_.seed, slice, g.first_core);
    const uint64_t one = uint64_t{1} << (random % g.width);
    const uint64_t some = round == 0 ? ~uint64_t{0} : random & 64 ? one : random * random;
    const uint64_t held = g.runnable & some ? g.runnable & ~some : 0;
    g.runnable &= ~held;
    run_group(g, jittered(config_.seed, slice, config_.cores + g.first_core, instructions), worker);
    g.runnable |= held;
  }
}

uint64_t SimdBackend::run_group(Group& g, uint64_t instructions, Worker& worker) {
  // Tallies of an epoch are 32 bits wide and stay there until somebody asks.
  constexpr uint32_t kMost = uint32_t{1} << 30;
  const uint32_t most = config_.count_lanes ? kMostCountedSteps : kMost;
  const auto all = static_cast<int64_t>(std::min<uint64_t>(instructions, most));
  int64_t left = all;
  BlockCounter& blocks = worker.blocks;
  g.block_counts = blocks.data();
  g.workspace = &worker.workspace;
  g.events = &worker.events;
  g.gave_way = false;
  if (g.unflushed >= kMost) simd::flush_epochs(g);
  // Lanes whose block ended in an event when they reached the limit stop now.
  if (config_.max_instructions) simd::stop_at_limit(g);
  while (left > 0 && g.runnable != 0 && !g.gave_way) {
    const int64_t budget = std::min(left, simd::instructions_to_limit(g));
    g.budget = budget;
    simd::begin_lanes(g);
    simd::run_group(g);
    if (config_.count_lanes) simd::settle_lanes(g);
    left -= budget - g.budget;
    if (config_.max_instructions) simd::stop_at_limit(g);
  }
  g.steps += static_cast<uint64_t>(all - left);
  g.unflushed += static_cast<uint64_t>(all - left);
  simd::begin_lanes(g);
  if (config_.count_lanes &&
      (blocks.steps += static_cast<uint64_t>(all - left)) > kMostCountedSteps)
    blocks.take_apart();
  return static_cast<uint64_t>(all - left);
}

std::span<const Event> SimdBackend::run_slice(uint64_t instructions) {
  events_.clear();
  start_clock();
  // While few groups are awake, the host need not look as often, nor they at the others.
  constexpr size_t kMostRounds = 16, kLonger = 4;
  const bool may_differ = config_.seed != 0 || config_.journal_words != 0;
  size_t round = 0, most = 1;
  do {
    run_awake(most >= kMostRounds ? kLonger * instructions : instructions);
    most = may_differ || awake_.empty() ? 1 : groups_.size() / awake_.size();
  } while (events_.empty() && !ends_slices() && ++round < std::min(kMostRounds, most));
  was_ended_ = ends_slices();
  for (const Event& e : events_) runnable_ -= e.count;
  sort_events();
  return events_;
}

void SimdBackend::Pace::note(bool together, uint64_t instructions, uint64_t atomics,
                             std::chrono::duration<double> time) {
  constexpr uint64_t kEnough = 1 << 14;  // instructions; less says little
  constexpr uint64_t kMany = 128;        // one atomic operation in so many instructions
  constexpr double kGain = 1.1;
  constexpr uint32_t kLongestWait = 128;
  if (instructions < kEnough) return;
  if (atomics * kMany < instructions) {
    *this = {};
    return;
  }
  const double speed = static_cast<double>(instructions) / time.count();
  if (together == together_) {
    last_speed_ = speed;
    if (wait_ > 0) --wait_;
    return;
  }
  if (speed > kGain * last_speed_) {
    together_ = together;
    last_speed_ = speed;
    next_wait_ = kFirstWait;
  }
  wait_ = next_wait_;
  next_wait_ = std::min(2 * next_wait_, kLongestWait);
}

// By what the groups did when they last ran: often one works and others only look at a flag.
bool SimdBackend::is_worth_threads() const {
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

// False: the rest of a slice that was ended goes on, with the groups that had no turn in it.
bool SimdBackend::begin_round() {
  ++slices_;
  if (std::exchange(was_ended_, false)) {
    std::erase_if(awake_, [this](uint32_t i) {
      return turns_[i].left.load(std::memory_order_relaxed) == 0;
    });
    if (!awake_.empty()) return false;
  }
  choose_awake();
  return true;
}

void SimdBackend::run_awake(uint64_t instructions) {
  const bool is_new = begin_round();
  const bool judged = config_.regroup && config_.seed == 0 && regrouper_.wants(slices_);
  const LaneUse before = judged || gear_ ? lane_use() : LaneUse{};
  // What is left of a slice has not run in it: its last use says nothing.
  if (is_new) is_worth_threads_ = is_worth_threads();
  workers_now_ =
      is_worth_threads_ && pace_.together() ? std::min(workers_.size(), awake_.size()) : 1;
  // The caller's own memory is seen by his threads, too.
  machine_.is_alone = workers_now_ == 1 && config_.linear_storage == nullptr;
  // Groups that stay close together find each other's data in the caches. One alone has nobody to
  // stay close to, but the clock is looked at between turns. Seeds have lengths of their own.
  constexpr uint64_t kTurnAlone = 4 * kTurn;
  turn_length_ = config_.seed != 0    ? instructions
                 : awake_.size() > 1  ? std::min(instructions, kTurn)
                 : has_time_limit()   ? std::min(instructions, kTurnAlone)
                                      : instructions;
  for (const uint32_t i : awake_) {
    rests_[i].used = 0;
    if (!is_new) continue;
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
  for (Worker& w : workers_) {
    events_.insert(events_.end(), w.events.begin(), w.events.end());
    w.events.clear();
    atomics += std::exchange(w.workspace.atomics, 0);
  }
  if (is_worth_threads_) pace_.note(workers_now_ > 1, used, atomics, time);
  mark_hot_blocks(used);
  if (change_gear(used, before)) return;
  bool moved = false;
  if (judged) {
    const LaneUse now = lane_use();
    moved = regrouper_.after_slice(slices_, now.instructions - before.instructions,
                                   now.steps - before.steps);
  }
  constexpr uint64_t kShuffleEvery = 16;
  if (config_.seed != 0 && groups_.size() > 1 && slices_ % kShuffleEvery == 0) {
    regrouper_.shuffle(config_.seed, slices_);
    moved = true;
  }
  if (!moved) return;
  ++regroupings_;
  for (size_t i = 0; i < groups_.size(); ++i) rest(i, false);
}

SimdBackend::LaneUse SimdBackend::lane_use() const {
  LaneUse sum;
  for (const uint32_t i : awake_) {
    sum.instructions += simd::Regrouper::instructions(groups_[i]);
    sum.steps += groups_[i].steps;
  }
  return sum;
}

// `used`: instructions since the last time.
void SimdBackend::mark_hot_blocks(uint64_t used) {
  const uint64_t hot = uint64_t{config_.native_after} * simd::kMaxLanes;
  // Looking through all blocks costs more than most slices: do it ever more seldom.
  if (!native_) return;
  if (native_->alone()) return mark_hot_blocks_of_one(used);
  native_->mark_misfits();
  if (slices_ < next_mark_) return;
  next_mark_ = slices_ + std::min<uint64_t>(slices_, 1024);
  const std::vector<uint64_t>& counts = all_blocks().counts;
  for (size_t b = 0; b < counts.size(); ++b)
    if (counts[b] >= hot) native_->mark(module_->blocks[b].first_uop);
}

// Looks through the blocks when the interpreter has run more instructions than that costs.
void SimdBackend::mark_hot_blocks_of_one(uint64_t used) {
  native::Engine& engine = *native_->alone();
  constexpr uint64_t kWorthALook = 4;     // instructions per block
  constexpr uint64_t kWorthCode = 1 << 14;  // instructions: many programs run no more
  const uint64_t natively = engine.instructions();
  interpreted_ += static_cast<int64_t>(used - (natively - std::exchange(natively_, natively)));
  if (config_.native_after != 0 && !engine.wants_other_code() &&
      interpreted_ < static_cast<int64_t>(
                         std::max(kWorthALook * module_->blocks.size(), kWorthCode)))
    return;
  interpreted_ = 0;
  for (const uint32_t uop : engine.compile(all_blocks().counts, config_.native_after))
    native_->mark(uop);
}

void SimdBackend::BlockCounter::resize(size_t blocks, bool counts_lanes) {
  counts.resize(blocks);
  if (!counts_lanes) return;
  both.resize(blocks);
  lanes.resize(blocks);
}

void SimdBackend::BlockCounter::take_apart() {
  for (size_t b = 0; b < both.size(); ++b) {
    counts[b] += static_cast<uint32_t>(both[b]);
    lanes[b] += both[b] >> 32;
    both[b] = 0;
  }
  steps = 0;
}

void SimdBackend::BlockCounter::take_over(BlockCounter& other) {
  other.take_apart();
  for (size_t b = 0; b < counts.size(); ++b) counts[b] += std::exchange(other.counts[b], 0);
  for (size_t b = 0; b < lanes.size(); ++b) lanes[b] += std::exchange(other.lanes[b], 0);
}

SimdBackend::BlockCounter& SimdBackend::all_blocks() {
  BlockCounter& all = workers_.front().blocks;
  all.take_apart();
  for (size_t w = 1; w < workers_.size(); ++w) all.take_over(workers_[w].blocks);
  return all;
}

std::vector<uint64_t> SimdBackend::block_counts() { return all_blocks().counts; }
std::vector<uint64_t> SimdBackend::block_lanes() { return all_blocks().lanes; }

std::vector<GroupUse> SimdBackend::group_use() {
  std::vector<GroupUse> list;
  if (!config_.count_lanes) return list;
  for (const Group& g : groups_)
    list.push_back({.offered = g.steps * g.width,
                    .active = simd::Regrouper::instructions(g),
                    .diverged = g.diverged,
                    .asleep = g.asleep});
  return list;
}

CoreTally SimdBackend::tally(uint32_t core) {
  CoreTally t;
  simd::flush_epochs(group_of(core));
  t.classes = group_of(core).lane_tally[lane_of(core)];
  t.classes[simd::kInsnCount] = 0;
  return t;
}

CoreTally SimdBackend::tally_of_all() {
  CoreTally t;
  for (const Group& g : groups_) {
    for (size_t e = 0; e < simd::kEpochs; ++e) {
      const auto lanes = static_cast<uint64_t>(std::popcount(g.epoch_mask[e]));
      if (g.epochs[e].counts[simd::kInsnCount] == 0) continue;
      for (size_t c = 0; c < t.classes.size(); ++c)
        t.classes[c] += lanes * g.epochs[e].counts[c];
    }
    for (uint32_t lane = 0; g.has_tallies && lane < g.width; ++lane)
      for (size_t c = 0; c < t.classes.size(); ++c) t.classes[c] += g.lane_tally[lane][c];
  }
  t.classes[simd::kInsnCount] = 0;
  return t;
}

}  // namespace gpusim
