#include "device_sim/cuda/host_backend.h"

#include <tuple>

namespace gpusim::cuda {

void HostBackend::configure(const Module& module, const MachineConfig& config) {
  configure_common(module, config, kLanesShift);
  reset(config.max_instructions);
  module_changed();
}

void HostBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = machine_.max_instructions = max_instructions;
  const uint32_t cores = config_.cores;
  states_.assign(cores, CoreState{});
  records_.assign(cores, StopRecord{});
  tallies_.assign(cores, CoreTally{});
  slots_.assign(size_t{module_->slot_count} * cores, 0);
  for (const InitialValue& v : module_->initial_values)
    for (uint32_t core = 0; core < cores; ++core) set_slot(core, v.slot, v.value);
}

void HostBackend::module_changed() {
  view_code();
  block_counts_.resize(module_->blocks.size());
  blocks_.clear();
  for (const Block& block : module_->blocks) blocks_.push_back(make_block_info(block));
  // A thread fetches the micro-op after the one it runs, also after the last.
  uops_ = module_->uops;
  uops_.push_back(Uop{.op = Op::trap});
  code_.uops = uops_.data();
  machine_ = Machine{.code = code_, .memory = memory_.view(), .blocks = blocks_.data(),
                     .max_instructions = config_.max_instructions, .seed = config_.seed};
}

uint32_t HostBackend::runnable() const {
  return static_cast<uint32_t>(std::count_if(states_.begin(), states_.end(), [](const auto& s) {
    return s.status == CoreStatus::kRunnable;
  }));
}

std::span<const Event> HostBackend::run_slice(uint64_t instructions) {
  events_.clear();
  ++slice_;
  // As on the device: the runnable cores, regrouped by where they are.
  const auto is_awake = [&](const CoreState& s) {
    return s.status == CoreStatus::kRunnable && !sleeps(memory_.view(), s, slice_);
  };
  if (std::none_of(states_.begin(), states_.end(), is_awake)) slice_ += kLongestSleep;
  std::vector<uint32_t> order;
  for (uint32_t core = 0; core < states_.size(); ++core)
    if (is_awake(states_[core])) {
      if (begin_slice(machine_, core, states_[core], slice_, instructions, records_[core]))
        order.push_back(core);
      else
        events_.push_back(make_event(core, states_[core], records_[core]));
    }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t x, uint32_t y) { return states_[x].pc < states_[y].pc; });
  for (size_t i = 0; i < order.size() && !ends_slices(); i += kWarpSize)
    run_warp(std::span(order).subspan(i, std::min<size_t>(kWarpSize, order.size() - i)));
  sort_events();
  return events_;
}

// Mirrors run_warp of kernel.cuh, a loop over lanes standing for the lanes.
void HostBackend::run_warp(std::span<const uint32_t> cores) {
  std::vector<uint32_t> running(cores.begin(), cores.end());
  const auto key = [&](uint32_t core) {
    return std::tuple(depth_key(states_[core]), states_[core].pc);
  };
  while (!running.empty()) {
    const auto lead = key(*std::min_element(
        running.begin(), running.end(), [&](uint32_t x, uint32_t y) { return key(x) < key(y); }));
    std::erase_if(running, [&](uint32_t core) {
      if (key(core) != lead) return false;
      Context context{*this, core};
      CoreState& s = states_[core];
      const BlockResult r = run_block(machine_, core, slice_, s, context, records_[core]);
      if (r.completed != kNoBlock) {
        ++block_counts_[r.completed];
        for (int c = 0; c < kInsnClassCount; ++c)
          tallies_[core].classes[static_cast<size_t>(c)] += blocks_[r.completed].classes[c];
      }
      if (s.status != CoreStatus::kRunnable) events_.push_back(make_event(core, s, records_[core]));
      return s.status != CoreStatus::kRunnable || r.gave_way || s.instructions >= s.slice_end;
    });
  }
}

}  // namespace gpusim::cuda
