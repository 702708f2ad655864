#include "device_sim/simd/simd_backend.h"

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <bit>
#include <new>
#include <stdexcept>

namespace gpusim {

using simd::Group;
using simd::kMaxLanes;

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
  configure_common(module, config, simd::kLanesShift);
  const uint32_t width = config.group_width;
  const uint64_t group_count = (uint64_t{config.cores} + width - 1) / width;
  const uint64_t group_words = uint64_t{module.slot_count} * kMaxLanes;
  slots_ = LazyMemory(group_count * group_words * sizeof(uint64_t), "contexts", Pages::kHuge);
  group_storage_ = LazyMemory(group_count * sizeof(Group), "groups of cores", Pages::kHuge);
  groups_ = {reinterpret_cast<Group*>(group_storage_.data()), group_count};
  block_counts_.assign(module.blocks.size(), 0);
  slices_ = 0;
  native_.reset();
  if (config.native_after != MachineConfig::kNeverNative && simd::TraceCompiler::available())
    native_ = std::make_unique<simd::CodeCache>();
  order_.compute(module);
  view_machine();
  if (config.native_after == 0) mark_hot_blocks();
  for (uint64_t i = 0; i < group_count; ++i) {
    Group& g = *new (&groups_[i]) Group();
    g.machine = &machine_;
    g.lanes = reinterpret_cast<uint64_t*>(slots_.data()) + i * group_words;
    g.first_core = static_cast<uint32_t>(i * width);
    g.width = std::min(width, config.cores - g.first_core);
    g.slot_count = module.slot_count;
    g.exists = ~uint64_t{0} >> (64 - g.width);
    for (uint64_t& key : g.lane_key) key = simd::key_of(0, 0);
    // Zeroed storage is a uniform zero already.
    for (const InitialValue& v : module.initial_values) simd::set_compact(g, v.slot, {v.value, 0});
  }
}

void SimdBackend::view_machine() {
  view_code();
  block_tallies_.resize(module_->blocks.size());
  for (size_t b = 0; b < module_->blocks.size(); ++b) {
    for (size_t c = 0; c < kInsnClassCount; ++c)
      block_tallies_[b].counts[c] = module_->blocks[b].classes[c];
    block_tallies_[b].counts[simd::kInsnCount] = module_->blocks[b].insn_count;
  }
  if (native_) {
    native_->assign(module_->uops);
    code_.uops = native_->uops();
  }
  machine_ = simd::Machine{.code = code_, .native = native_.get(), .memory = memory_.view(),
                           .block_tallies = block_tallies_.data(),
                           .rank = order_.rank().data(),
                           .uop_of_rank = order_.uop_at().data(),
                           .max_instructions = config_.max_instructions};
}

void SimdBackend::module_changed() {
  const std::vector<uint32_t> former = order_.extend(*module_);
  view_machine();
  if (!former.empty())
    for (Group& g : groups_)
      for (uint64_t& key : g.lane_key)
        key = simd::make_key(machine_, simd::key_depth(key), former[simd::key_rank(key)]);
  block_counts_.resize(module_->blocks.size());
}

uint64_t SimdBackend::slot(uint32_t core, Slot slot) {
  return group_of(core).get_lane(slot, lane_of(core));
}

void SimdBackend::set_slot(uint32_t core, Slot slot, uint64_t value) {
  simd::set_lane(group_of(core), slot, lane_of(core), value);
}

void SimdBackend::set_slots(Slot slot, CoreWord value) {
  for (Group& g : groups_) simd::set_compact(g, slot, {value.of(g.first_core), g.width > 1 ? value.step : 0});
}

void SimdBackend::forget_reach(uint64_t address) {
  if (slices_ == 0 || address >= config_.linear_base + config_.linear_size) return;
  for (Group& g : groups_) g.reach[0] = g.reach[1] = {};
}

void SimdBackend::start(uint32_t core, uint32_t uop) {
  Group& g = group_of(core);
  const uint32_t lane = lane_of(core);
  g.lane_key[lane] = simd::make_key(machine_, simd::key_depth(g.lane_key[lane]), uop);
  g.runnable |= uint64_t{1} << lane;
}

uint32_t SimdBackend::place(uint32_t core) {
  return simd::key_pc(machine_, group_of(core).lane_key[lane_of(core)]);
}

void SimdBackend::stop(uint32_t core) {
  group_of(core).runnable &= ~(uint64_t{1} << lane_of(core));
}

uint32_t SimdBackend::runnable() const {
  uint32_t n = 0;
  for (const Group& g : groups_) n += static_cast<uint32_t>(std::popcount(g.runnable));
  return n;
}

void SimdBackend::run_group(Group& g, uint64_t instructions, std::vector<uint64_t>& block_counts,
                            std::vector<Event>& events) {
  // Tallies of an epoch are 32 bits wide and stay there until somebody asks.
  constexpr uint32_t kMost = uint32_t{1} << 30;
  int64_t left = static_cast<int64_t>(std::min<uint64_t>(instructions, kMost));
  g.block_counts = block_counts.data();
  g.events = &events;
  g.gave_way = false;
  for (const simd::Epoch& e : g.epochs)
    if (e.tally.counts[simd::kInsnCount] >= kMost) simd::flush_epochs(g);
  // Lanes whose block ended in an event when they reached the limit stop now.
  if (config_.max_instructions) simd::stop_at_limit(g);
  while (left > 0 && g.runnable != 0 && !g.gave_way) {
    const int64_t budget = std::min(left, simd::instructions_to_limit(g));
    g.budget = budget;
    simd::run_group(g);
    left -= budget - g.budget;
    if (config_.max_instructions) simd::stop_at_limit(g);
  }
}

std::span<const Event> SimdBackend::run_slice(uint64_t instructions) {
  events_.clear();
  // Handing groups to threads costs as much time as some thousand instructions of a group.
  constexpr uint64_t kWorthThreads = 4096;
  if (config_.threads <= 1 || groups_.size() <= 1 ||
      instructions < kWorthThreads / groups_.size()) {
    for (Group& g : groups_)
      if (g.runnable) run_group(g, instructions, block_counts_, events_);
  } else {
    struct PerThread {
      std::vector<uint64_t> block_counts;
      std::vector<Event> events;
    };
    tbb::enumerable_thread_specific<PerThread> per_thread(
        [&] { return PerThread{std::vector<uint64_t>(block_counts_.size()), {}}; });
    tbb::task_arena arena(static_cast<int>(config_.threads));
    arena.execute([&] {
      tbb::parallel_for(size_t{0}, groups_.size(), [&](size_t i) {
        if (!groups_[i].runnable) return;
        PerThread& mine = per_thread.local();
        run_group(groups_[i], instructions, mine.block_counts, mine.events);
      });
    });
    for (const PerThread& t : per_thread) {
      for (size_t b = 0; b < block_counts_.size(); ++b) block_counts_[b] += t.block_counts[b];
      events_.insert(events_.end(), t.events.begin(), t.events.end());
    }
  }
  sort_events();
  mark_hot_blocks();
  return events_;
}

void SimdBackend::mark_hot_blocks() {
  const uint64_t hot = uint64_t{config_.native_after} * simd::kMaxLanes;
  // Looking through all blocks costs more than most slices: do it ever more seldom.
  if (!native_ || (!std::has_single_bit(++slices_) && slices_ % 1024 != 0)) return;
  for (size_t b = 0; b < block_counts_.size(); ++b)
    if (block_counts_[b] >= hot) native_->mark(module_->blocks[b].first_uop);
}

std::vector<uint64_t> SimdBackend::block_counts() { return block_counts_; }

CoreTally SimdBackend::tally(uint32_t core) {
  CoreTally t;
  simd::flush_epochs(group_of(core));
  t.classes = group_of(core).lane_tally[lane_of(core)];
  t.classes[simd::kInsnCount] = 0;
  return t;
}

}  // namespace gpusim
