#include "device_sim/scalar/scalar_backend.h"

#include <utility>

#include "device_sim/core/interleaving.h"
#include "device_sim/scalar/scalar_warps.h"

namespace gpusim {

void ScalarBackend::configure(const Module& module, const MachineConfig& config) {
  configure_common(module, config, /*lanes_shift=*/0);
  warps_ = module.warp_size != 0 ? std::make_unique<ScalarWarps>(*this) : nullptr;
  if (warps_) warps_->configure();
  reset(config.max_instructions);
  block_counts_.assign(module.blocks.size(), 0);
}

void ScalarBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = max_instructions;
  next_turn_ = 0;
  cores_.assign(config_.cores, Core{});
  for (Core& core : cores_) {
    core.slots.assign(module_->slot_count, 0);
    for (const InitialValue& v : module_->initial_values) core.slots[v.slot] = v.value;
  }
  if (warps_) warps_->reset();
}

void ScalarBackend::module_changed() {
  view_code();
  block_counts_.resize(module_->blocks.size());
  if (warps_) warps_->module_changed();
}

uint32_t ScalarBackend::runnable() const {
  if (warps_) return warps_->runnable();
  return static_cast<uint32_t>(std::count_if(cores_.begin(), cores_.end(), [](const Core& c) {
    return c.status == CoreStatus::kRunnable;
  }));
}

void ScalarBackend::find_sleepers(std::span<uint8_t> out) {
  for (size_t i = 0; i < cores_.size(); ++i) {
    const Core& c = cores_[i];
    const bool waits = c.waits && !c.watch.has_event(memory_.view());
    out[i] = c.status != CoreStatus::kRunnable || waits;
  }
}

std::span<const Event> ScalarBackend::run_slice(uint64_t instructions) {
  events_.clear();
  clock_.start();
  if (warps_) {
    ++slices_;
    warps_->run_slice(instructions);
    sort_events();
    return events_;
  }
  // The rest of a slice that was ended comes first.
  uint32_t k = std::exchange(next_turn_, 0);
  bool idle = k == 0;
  if (k == 0) ++slices_;
  const uint64_t first = config_.seed ? mixed(config_.seed, slices_, cores_.size()) : 0;
  // A second time, without sleep, if all sleep.
  for (int pass = 0; pass == 0 || (pass == 1 && idle); ++pass, k = 0)
    for (; k < cores_.size(); ++k) {
      if (clock_.is_over()) {
        next_turn_ = k;
        break;
      }
      const auto i = static_cast<uint32_t>((k + first) % cores_.size());
      Core& core = cores_[i];
      if (core.status != CoreStatus::kRunnable || (pass == 0 && sleeps(core))) continue;
      run_core(i, jittered(config_.seed, slices_, i, instructions));
      clock_.look();
      idle = false;
    }
  sort_events();
  return events_;
}

bool ScalarBackend::sleeps(Core& core) {
  if (!core.waits) return false;
  if (!core.watch.has_event(memory_.view())) return slices_ < core.until;
  core.rounds = 0;
  return false;
}

void ScalarBackend::give_way(uint32_t number, const Uop& u) {
  if (static_cast<Turn>(u.aux) != Turn::kWaitForEvent) return;
  Core& core = cores_[number];
  const MemoryView memory = memory_.view();
  core.waits = start_watch(memory, number, core.slots[u.a], core.slots[u.a + 1u],
                           core.events_seen, core.watch);
  core.until = slices_ + slices_to_sleep(core.rounds++);
  if (!core.watch.word) core.events_seen = *memory.events;
}

bool ScalarBackend::complete_block(Core& core, const Uop& u, uint32_t next) {
  const Block& block = module_->blocks[u.block()];
  ++block_counts_[u.block()];
  for (int c = 0; c < kInsnClassCount; ++c) core.tally.classes[c] += block.classes[c];
  core.instructions += block.insn_count;
  core.pc = next;
  return config_.max_instructions == 0 || core.instructions < config_.max_instructions;
}

Outcome ScalarBackend::execute_one(const Uop& u, uint32_t number, StopInfo& stop) {
  return execute(u, cores_[number], memory_.view(), number, stop);
}

void ScalarBackend::run_core(uint32_t number, uint64_t instructions) {
  Core& core = cores_[number];
  const uint64_t slice_end = core.instructions + instructions;
  core.waits = false;
  const auto stop_with = [&](Event event) {
    core.status = event.status;
    events_.push_back(event);
  };
  // A block that ended in an event may have reached the limit.
  if (config_.max_instructions && core.instructions >= config_.max_instructions)
    return stop_with(limit_event(number, core.pc));
  while (core.instructions < slice_end) {
    const uint32_t at = core.pc;
    const Uop& u = code_.uops[at];
    StopInfo stop;
    uint32_t next = at + 1;
    switch (execute_one(u, number, stop)) {
      case Outcome::kNext: core.pc = next; continue;
      case Outcome::kLink: core.pc = u.target(); continue;
      case Outcome::kMeets:  // this machine's cores are alone
      case Outcome::kFault: return stop_with(fault_event(number, at, stop));
      case Outcome::kNotTaken: break;
      case Outcome::kTaken:
      case Outcome::kJump:
      case Outcome::kSignalled: next = u.target(); break;
      case Outcome::kJumpReg:
        next = code_.find(core.get(u.a));
        complete_block(core, u, next);
        if (next == kNoUop) return stop_with(jump_event(number, at, core.get(u.a)));
        if (config_.max_instructions && core.instructions >= config_.max_instructions)
          return stop_with(limit_event(number, next));
        continue;
      case Outcome::kGiveWay:
        if (!complete_block(core, u, u.target())) return stop_with(limit_event(number, core.pc));
        return give_way(number, u);
      case Outcome::kService:
        complete_block(core, u, u.target());
        return stop_with(service_event(number, u));
    }
    if (!complete_block(core, u, next)) return stop_with(limit_event(number, next));
  }
}

}  // namespace gpusim
