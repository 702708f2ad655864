// The reference: one core after the other, one micro-op at a time. Short and obviously right; it
// is never optimised. Cores of modules with warps run in step (scalar_warps.h).
#pragma once
#include <memory>

#include "device_sim/core/cpu_backend.h"
#include "device_sim/core/execute.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/core/sleepers.h"
#include "device_sim/core/wait.h"

namespace gpusim {

class ScalarWarps;

class ScalarBackend : public CpuBackend, public CpuMachineState, public Sleepers {
 public:
  ScalarBackend();
  ~ScalarBackend() override;
  std::string name() const override { return "scalar"; }
  std::string device() const override { return "host CPU, one core at a time"; }
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override;
  void module_changed() override;
  uint64_t slot(uint32_t core, Slot slot) override { return cores_[core].slots[slot]; }
  void set_slot(uint32_t core, Slot slot, uint64_t value) override {
    cores_[core].slots[slot] = value;
  }
  void start(uint32_t core, uint32_t uop) override;
  void stop(uint32_t core) override;
  uint32_t place(uint32_t core) override;
  void start_cta(uint32_t place, uint32_t uop) override;
  void set_cta_slots(uint32_t place, Slot slot, CoreWord value) override;
  std::span<const Event> run_slice(uint64_t instructions) override;
  uint32_t runnable() const override;
  void find_sleepers(std::span<uint8_t> out) override;
  std::vector<uint64_t> block_counts() override { return block_counts_; }
  CoreTally tally(uint32_t core) override { return cores_[core].tally; }
  // Every core is a group of its own.
  std::vector<uint64_t> block_lanes() override { return block_counts_; }
  std::vector<GroupUse> group_use() override {
    std::vector<GroupUse> list;
    for (const Core& core : cores_)
      list.push_back({.offered = core.instructions, .active = core.instructions});
    return list;
  }

  // MachineState (scalar_state.cpp).
  uint64_t instructions() override;
  std::vector<CoreSnapshot> cores() override;
  std::vector<uint8_t> scheduling() override;
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t> scheduling) override;
  void slots(Slot slot, std::span<uint64_t> values) override;
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override;
  void set_block_counts(std::span<const uint64_t> counts,
                        std::span<const uint64_t> lanes) override;

 protected:
  friend class ScalarWarps;
  struct Core {
    std::vector<uint64_t> slots;
    uint32_t pc = 0;
    CoreStatus status = CoreStatus::kIdle;
    uint64_t instructions = 0;
    bool waits = false;  // for an event; until it has come, or the slice `until`
    Watch watch;
    uint32_t events_seen = 0;  // of those signalled
    uint32_t rounds = 0;       // of waiting, in vain
    uint64_t until = 0;
    CoreTally tally;
    uint64_t get(Slot s) const { return slots[s]; }
    void set(Slot s, uint64_t value) { slots[s] = value; }
    uint64_t clock(const MemoryView& m) const { return clock_word(m.class_ticks, tally.classes); }
  };
  // One micro-op of `code_`, but for warps. Checkers do theirs beside it.
  virtual Outcome execute_one(const Uop& u, uint32_t number, StopInfo& stop);

  std::vector<Core> cores_;

 public:
  static constexpr size_t kSchedulingBytes = sizeof(Core);

 private:
  Memory machine_memory() override { return {memory_.view(), config_.cores, memory_.storage()}; }
  template <class Archive>
  void describe_scheduling(Archive& a);
  // Whether it waits for an event that has not come.
  bool sleeps(Core& core);
  void give_way(uint32_t number, const Uop& u);
  void run_core(uint32_t number, uint64_t instructions);
  // Counts the block that `u` ends for this core and continues at `next`. False: limit reached.
  bool complete_block(Core& core, const Uop& u, uint32_t next);

  uint64_t slices_ = 0;
  uint32_t next_turn_ = 0;  // where a slice that was ended goes on
  std::vector<uint64_t> block_counts_;
  std::unique_ptr<ScalarWarps> warps_;  // of modules with warps
};

}  // namespace gpusim
