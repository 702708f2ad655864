#include "device_sim/simd/simd_backend.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace gpusim {

using simd::Group;

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
  if (config.group_width == 0 || config.group_width > simd::kMaxLanes ||
      !std::has_single_bit(config.group_width))
    throw std::runtime_error("the group width must be a power of two from 1 to 64, not " +
                             std::to_string(config.group_width));
  const bool has_warps = module.warp_size != 0;
  if (has_warps && config.group_width < kWarpLanes)
    throw std::runtime_error("groups hold whole warps: their width must be 32 or 64, not " +
                             std::to_string(config.group_width));
  // Neighbouring lanes' windows lie side by side; a core alone has its window in one piece.
  const bool is_of_one = config.group_width == 1 || config.cores == 1;
  configure_common(module, config, is_of_one ? 0 : simd::kLanesShift);
  if (has_warps) config_.regroup = false;
  groups_.configure(machine_, module, config.cores, config.group_width, config.cta_threads);
  ctas_.reset();
  if (has_warps) ctas_.emplace(groups_, module);
  groups_.arrange(/*alone=*/false);
  gear_.reset();
  counts_alone_.clear();
  if (may_part()) {
    memory_.reserve_other_layout();
    gear_ = new_gear();
  }
  unmarked_ = kLookAtOnce;
  regroupings_ = rearrangements_ = 0;
  make_code_caches();
  order_ = ReconvergenceOrder(/*ranks=*/!is_of_one);
  order_.compute(module);
  block_tallies_.clear();
  scheduler_.configure(config);
  view_machine();
  if (config.native_after == 0) mark_hot_blocks(/*used=*/0);
  make_groups();
  // Nothing has to move yet.
  if (gear_ && config.starts_alone) arrange(/*alone=*/true, /*is_fresh=*/true);
}

// Whether the cores of a group may run alone instead. Those who look at groups, or at what cores do
// by turns, want them as they were asked for.
bool SimdBackend::may_part() {
  constexpr uint32_t kMostCores = 4096;  // each has a group of its own then
  const bool is_wanted = config_.regroup && !groups_.is_of_one() && config_.cores <= kMostCores &&
                         config_.memory_model == MemoryModel::kShared &&
                         config_.linear_storage == nullptr && !config_.keeps_groups &&
                         (config_.journal_words == 0 || config_.notes_clocks) &&
                         config_.seed == 0 &&
                         config_.native_after != MachineConfig::kNeverNative;
  return is_wanted && make_engine() != nullptr;  // interpreted alone they would be slow
}

simd::Gear SimdBackend::new_gear() const {
  // Measured: 5 to 12 with native code, 8 to 27 without; 20 to 40 for groups of which up to half is
  // active (docs/adr/0028-two-gears.md).
  const simd::Gear::StepCost step_cost = {
      .few = 40, .all = groups_code_ != simd::VectorCode::kNone ? 8 : 16};
  // Of changing over: all registers move, and whatever was touched of all windows.
  constexpr int64_t kAlways = 2'000'000, kPerCore = 16'000, kPerPage = 10;
  const auto pages = static_cast<int64_t>(windows_storage_bytes(memory_.view()) >> kPageShift);
  const int64_t price = kAlways + kPerCore * config_.cores + kPerPage * pages;
  const bool as_often_as_can_be = config_.native_after == 0;
  return {step_cost, std::min(config_.cores, config_.group_width), as_often_as_can_be ? 1 : price};
}

std::unique_ptr<native::Engine> SimdBackend::make_engine() {
  return native::Engine::make(
      *module_, memory_.view(), 1 + (config_.count_lanes ? uint64_t{1} << 32 : 0),
      [this] { return memory_.guard() ? memory_.direct() : DirectMemory{}; });
}

// Code that leaves permissions to the host runs only while the host's pages have them: they are
// open after checkpoints and while windows are interleaved.
void SimdBackend::guard_memory() {
  native::Engine* const code = native_ ? native_->alone() : nullptr;
  if (code && code->needs_guard() && !memory_.is_guarded() && !memory_.guard()) code->lose_guard();
}

std::unique_ptr<simd::CodeCache> SimdBackend::new_code_cache() const {
  simd::Patience patience;
  if (config_.native_after == 0) patience = {.misses = 64, .misfits = 32};  // for tests
  return std::make_unique<simd::CodeCache>(groups_code_, patience);
}

void SimdBackend::make_code_caches() {
  native_.reset();
  other_native_.reset();
  natively_ = 0;
  interpreted_ = 0;
  if (config_.native_after == MachineConfig::kNeverNative) return;
  std::unique_ptr<native::Engine> alone;
  // Rights to memory of the caller's change without notice.
  if (groups_.is_of_one() && config_.linear_storage == nullptr) alone = make_engine();
  if (!alone && groups_code_ == simd::VectorCode::kNone) return;
  native_ = new_code_cache();
  native_->set_alone(std::move(alone));
}

// Groups of one core, or of as many as was asked for. Cores, registers and memory stay as they are;
// who waits looks again. `is_fresh`: no core has anything in its window.
void SimdBackend::arrange(bool alone, bool is_fresh) {
  const std::vector<CoreSnapshot> all = cores();
  const std::vector<GroupUse> use = groups_.use();
  // With cores whose events the slice has yet to report.
  const uint32_t runnable = groups_.runnable();
  std::vector<uint64_t> values(size_t{module_->slot_count} * config_.cores);
  const auto values_of = [&](size_t s) {
    return std::span(values).subspan(s * config_.cores, config_.cores);
  };
  for (size_t s = 0; s < module_->slot_count; ++s) slots(static_cast<Slot>(s), values_of(s));

  constexpr int64_t kPerPage = 3000;  // of instructions: its words go to places of their own
  const uint64_t pages = memory_.interleave(alone ? 0 : simd::kLanesShift, is_fresh);
  if (config_.native_after != 0) gear_->note_change(kPerPage * static_cast<int64_t>(pages));
  std::swap(native_, other_native_);
  if (alone && !native_) {
    std::unique_ptr<native::Engine> engine = make_engine();
    const MemoryView& memory = memory_.view();
    engine->permissions_changed(memory.linear_base, memory.linear_size);
    engine->permissions_changed(memory.window_base, memory.windows_size);
    native_ = new_code_cache();
    native_->set_alone(std::move(engine));
    native_->follow(*module_);
  }
  connect();
  groups_.arrange(alone);
  groups_.reset();
  groups_.restore(all, /*scheduled=*/false);
  groups_.set_past_use(use);
  groups_.set_runnable(runnable);
  for (size_t s = 0; s < module_->slot_count; ++s)
    set_all_slots(static_cast<Slot>(s), values_of(s));
  scheduler_.reset();
  if (!alone) counts_alone_ = scheduler_.blocks().counts();
  ++rearrangements_;
}

// After a round of cores alone: whether those that worked are at so few places that lockstep is
// likely to pay. Cores that waited at a barrier part of the time have worked, those that woke to
// look at a flag have not.
bool SimdBackend::are_cores_close() const {
  constexpr uint64_t kNear = 32;  // micro-ops in the order of lanes: a loop or two
  uint64_t most = 0;
  for (const uint32_t core : scheduler_.awake()) most = std::max(most, scheduler_.used(core));
  uint64_t busy = 0, places = 0;
  std::vector<uint64_t> keys;  // of the cores of what would be a group
  const auto add = [&] {
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) places += i == 0 || keys[i] - keys[i - 1] > kNear;
    busy += keys.size();
    keys.clear();
  };
  uint32_t group = 0;
  for (const uint32_t core : scheduler_.awake()) {
    if (core / config_.group_width != group) add();
    group = core / config_.group_width;
    if (2 * scheduler_.used(core) >= most) keys.push_back(groups_.all()[core].key(0));
  }
  add();
  return 2 * busy >= places * std::min(config_.cores, config_.group_width);
}

// After a round with so many instructions, of cores alone, or with such use of lanes.
bool SimdBackend::wants_other_gear(uint64_t used, const simd::Groups::LaneUse& use) {
  if (!groups_.is_of_one())
    return gear_->loses(use.instructions, use.steps, groups_.access_cost_of(scheduler_.awake()));
  if (gear_->tries(used, scheduler_.awake().size())) return true;
  if (!gear_->may_try_early() || !are_cores_close()) return false;
  gear_->try_now();
  return true;
}

void SimdBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = machine_.max_instructions = max_instructions;
  make_groups();
}

void SimdBackend::make_groups() {
  groups_.reset();
  if (ctas_) ctas_->reset(config_.cores, config_.cta_threads, config_.cluster_ctas);
  scheduler_.reset();
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
  scheduler_.set_blocks(module_->blocks.size());
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
                           .permission_changes = machine_.permission_changes + 1,
                           .ctas = ctas_ ? &*ctas_ : nullptr};
}

void SimdBackend::module_changed() {
  const std::vector<uint32_t> former = order_.extend(*module_);
  view_machine();
  if (!former.empty()) groups_.move_keys(former);
}

// Blocks that came late to a large module stand behind all others in the order, and those that come
// last are the loops that a program then stays in. So now and then, between slices, all are ranked
// anew: that takes 50 ns per micro-op, and a slice 0.3 ms at least. It follows from counts.
void SimdBackend::rank_late_blocks() {
  constexpr uint64_t kUopsPerSlice = 1024;
  if (groups_.is_of_one() || !order_.is_partly_ranked() ||
      scheduler_.slices() % (1 + module_->uops.size() / kUopsPerSlice) != 0)
    return;
  const std::vector<uint32_t> former = order_.uop_at();
  order_.compute(*module_);
  connect();
  groups_.move_keys(former);
}

void SimdBackend::forget_reach(uint64_t address) {
  ++machine_.permission_changes;
  if (scheduler_.slices() == 0 || address >= config_.linear_base + config_.linear_size) return;
  for (Group& g : groups_.all()) {
    g.reach[0] = g.reach[1] = {};
    for (auto& former : g.former_reach) std::ranges::fill(former, simd::Reach{});
  }
}

void SimdBackend::start(uint32_t core, uint32_t uop) {
  if (ctas_) ctas_->ctas().start(core);
  groups_.start(core, uop);
  scheduler_.wake(groups_.number_of(core));
}

void SimdBackend::stop(uint32_t core) {
  groups_.stop(core);
  if (!ctas_) return;
  ctas_->ctas().end(core & ~(kWarpLanes - 1), 1u << core % kWarpLanes);
  wake_released(groups_.number_of(core));
}

void SimdBackend::wake_released(size_t group) {
  ctas_->take_released(group, [this](size_t other) { scheduler_.wake(other); });
}

void SimdBackend::start_cta(uint32_t place, uint32_t uop) {
  ctas_->begin(place, uop);
  const uint32_t first = place << ctas_->ctas().shift();
  for (uint32_t thread = 0; thread < config_.cta_threads; thread += groups_.width())
    scheduler_.wake(groups_.number_of(first + thread));
}

void SimdBackend::set_cta_slots(uint32_t place, Slot slot, CoreWord value) {
  ctas_->set_slots(place, slot, value);
}

// Threads that wait for each other are of no use to each other.
void SimdBackend::report_stuck_ctas() {
  Ctas& ctas = ctas_->ctas();
  for (uint32_t place = 0; place < ctas.places(); ++place)
    if (ctas.is_stuck(place))
      ctas.give_up(place, [this](uint32_t core) {
        events_.push_back(fault_event(core, groups_.place(core), {Fault::kDeadlock, 0}));
      });
}

uint32_t SimdBackend::runnable() const {
  if (!ctas_) return groups_.runnable();
  uint32_t runnable = 0;  // threads end, and wait for each other, without an event
  for (const Group& g : groups_.all())
    runnable += static_cast<uint32_t>(std::popcount(g.runnable | g.waiting));
  return runnable;
}

void SimdBackend::start_all(uint32_t uop) {
  groups_.start_all(uop);
  scheduler_.look_again();
}

std::span<const Event> SimdBackend::run_slice(uint64_t instructions) {
  events_.clear();
  clock_.start();
  // While few groups are awake, the host need not look as often, nor they at the others.
  constexpr size_t kMostRounds = 16, kLonger = 4;
  const bool may_differ = config_.seed != 0 || config_.journal_words != 0;
  size_t round = 0, most = 1;
  do {
    run_rounds(most >= kMostRounds ? kLonger * instructions : instructions);
    const size_t awake = scheduler_.awake().size();
    most = may_differ || awake == 0 ? 1 : groups_.size() / awake;
  } while (events_.empty() && !clock_.is_over() && ++round < std::min(kMostRounds, most));
  scheduler_.end_slice();
  uint32_t stopped = 0;
  for (const Event& e : events_) stopped += e.count;
  groups_.set_runnable(groups_.runnable() - stopped);
  if (ctas_) report_stuck_ctas();
  sort_events();
  return events_;
}

// Lanes that had better run alone should not get far before that is noticed.
void SimdBackend::run_rounds(uint64_t instructions) {
  constexpr uint64_t kInLockstep = 1 << 15, kOnTrial = 1 << 13;
  for (uint64_t left = instructions; left != 0 && events_.empty() && !clock_.is_over();) {
    const bool is_judged = gear_ && !groups_.is_of_one();
    const uint64_t most = gear_ && gear_->is_on_trial() ? kOnTrial : kInLockstep;
    const uint64_t one = is_judged ? std::min(left, most) : left;
    if (run_round(one) == 0) return;
    left -= one;
  }
}

// Returns what groups executed.
uint64_t SimdBackend::run_round(uint64_t instructions) {
  guard_memory();
  rank_late_blocks();
  scheduler_.begin_round();
  const uint64_t round = scheduler_.slices();
  simd::Regrouper& regrouper = groups_.regrouper();
  const bool is_judged = config_.regroup && config_.seed == 0 && regrouper.wants(round);
  const bool is_counted = is_judged || (gear_ && !groups_.is_of_one());
  simd::Groups::LaneUse use;
  if (is_counted) use = groups_.use_of(scheduler_.awake());
  // Code is generated as soon as it pays: a slice is long for the interpreter.
  uint64_t seen = 0;
  const auto after_turn = [&](uint64_t used_in_turn) {
    seen += used_in_turn;
    mark_hot_blocks(used_in_turn);
  };
  const uint64_t used = scheduler_.run_round(
      instructions, events_, native_ ? simd::Scheduler::AfterTurn(after_turn) : nullptr);
  if (is_counted) use = groups_.use_of(scheduler_.awake()) - use;
  if (seen == 0) mark_hot_blocks(used);
  if (gear_ && wants_other_gear(used, use)) {
    arrange(/*alone=*/!groups_.is_of_one());
    return used;
  }
  constexpr uint64_t kShuffleEvery = 16;
  bool moved = is_judged && regrouper.after_slice(round, use.instructions, use.steps);
  if (config_.seed != 0 && !ctas_ && groups_.size() > 1 && round % kShuffleEvery == 0) {
    regrouper.shuffle(config_.seed, round);
    moved = true;
  }
  if (!moved) return used;
  ++regroupings_;
  scheduler_.look_again();
  return used;
}

// `used`: instructions of groups since the last time.
void SimdBackend::mark_hot_blocks(uint64_t used) {
  const uint64_t hot = uint64_t{config_.native_after} * simd::kMaxLanes;
  // Looking at a block costs a nanosecond or two, a step of a group four and more.
  constexpr uint64_t kWorthALook = 16;  // steps per block
  if (!native_) return;
  if (native_->alone()) return mark_hot_blocks_of_one(used);
  unmarked_ += used;
  if (config_.native_after != 0 && unmarked_ < kWorthALook * module_->blocks.size()) return;
  unmarked_ = 0;
  native_->mark_misfits();
  const std::vector<uint64_t>& counts = scheduler_.blocks().counts();
  const auto alone = [this](size_t b) { return b < counts_alone_.size() ? counts_alone_[b] : 0; };
  const size_t begin = hot == 0 ? native_->note_blocks(counts.size()) : 0;
  for (size_t b = begin; b < counts.size(); ++b)
    if (counts[b] - alone(b) >= hot && native_->note_hot(b)) {
      native_->mark(module_->blocks[b].first_uop);
      if (ctas_) mark_after_barriers(module_->blocks[b]);
    }
}

// Where a CTA has several groups, each comes to a barrier's next row from outside.
void SimdBackend::mark_after_barriers(const Block& block) {
  const uint32_t last = block.first_uop + block.uop_count - 1;
  for (uint32_t u = block.first_uop; u < last; ++u) {
    const Shape shape = op_info(module_->uops[u].op).shape;
    if (shape == Shape::kCtaSync || shape == Shape::kCtaReduce) native_->mark(u + 1);
  }
}

// Looks through the blocks when the interpreter has run more instructions than that costs.
void SimdBackend::mark_hot_blocks_of_one(uint64_t used) {
  native::Engine& engine = *native_->alone();
  constexpr uint64_t kWorthALook = 4;     // instructions per block
  constexpr uint64_t kWorthCode = 1 << 14;  // instructions: many programs run no more
  const uint64_t natively = scheduler_.alone_instructions();
  interpreted_ += static_cast<int64_t>(used - (natively - std::exchange(natively_, natively)));
  if (config_.native_after != 0 && !engine.wants_other_code() &&
      interpreted_ < static_cast<int64_t>(
                         std::max(kWorthALook * module_->blocks.size(), kWorthCode)))
    return;
  interpreted_ = 0;
  for (const uint32_t uop : engine.compile(scheduler_.blocks().counts(), config_.native_after))
    native_->mark(uop);
}

}  // namespace gpusim
