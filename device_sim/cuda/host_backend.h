// The CUDA threads' code run on the host, warp by warp: what a GPU would do but for the launches.
// For tests on machines without one; not meant for use.
#pragma once
#include "device_sim/core/cpu_backend.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/cuda/thread.h"

namespace gpusim::cuda {

class HostBackend final : public CpuBackend, public CpuMachineState {
 public:
  std::string name() const override { return "cuda-host"; }
  std::string device() const override { return "host CPU, the CUDA threads' code"; }
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override;
  void module_changed() override;
  uint64_t slot(uint32_t core, Slot slot) override { return slots_[index(core, slot)]; }
  void set_slot(uint32_t core, Slot slot, uint64_t value) override {
    slots_[index(core, slot)] = value;
  }
  void start(uint32_t core, uint32_t uop) override {
    states_[core].pc = uop;
    states_[core].status = CoreStatus::kRunnable;
    states_[core].waits = false;
  }
  void stop(uint32_t core) override { states_[core].status = CoreStatus::kIdle; }
  uint32_t place(uint32_t core) override { return states_[core].pc; }
  std::span<const Event> run_slice(uint64_t instructions) override;
  uint32_t runnable() const override;
  std::vector<uint64_t> block_counts() override { return block_counts_; }
  CoreTally tally(uint32_t core) override { return tallies_[core]; }

  // MachineState (host_state.cpp).
  uint64_t instructions() override;
  std::vector<CoreSnapshot> cores() override;
  std::vector<uint8_t> scheduling() override;
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t> scheduling) override;
  void slots(Slot slot, std::span<uint64_t> values) override;
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override;
  void set_block_counts(std::span<const uint64_t> counts,
                        std::span<const uint64_t> lanes) override;

  // On a GPU: the state, and places in lists.
  static constexpr size_t kSchedulingBytes = sizeof(CoreState) + sizeof(StopRecord) + 6 * sizeof(uint32_t);

 private:
  Memory machine_memory() override { return {memory_.view(), config_.cores}; }
  template <class Archive>
  void describe_scheduling(Archive& a);
  // As in device memory: [slot][core].
  struct Context {
    HostBackend& owner;
    uint32_t core;
    uint64_t get(Slot s) const { return owner.slots_[owner.index(core, s)]; }
    void set(Slot s, uint64_t value) { owner.slots_[owner.index(core, s)] = value; }
  };
  size_t index(uint32_t core, Slot slot) const { return size_t{slot} * states_.size() + core; }
  void run_warp(std::span<const uint32_t> cores);

  Machine machine_;
  uint32_t slice_ = 0;
  std::vector<Uop> uops_;
  std::vector<BlockInfo> blocks_;
  std::vector<uint64_t> slots_;
  std::vector<CoreState> states_;
  std::vector<StopRecord> records_;
  std::vector<uint64_t> block_counts_;
  std::vector<CoreTally> tallies_;
};

}  // namespace gpusim::cuda
