// Cores in lockstep groups on SIMD lanes, groups spread over host threads.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "device_sim/core/calls_first.h"
#include "device_sim/core/cpu_backend.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/core/order.h"
#include "device_sim/core/shared_memory.h"
#include "device_sim/core/sleepers.h"
#include "device_sim/simd/gear.h"
#include "device_sim/simd/grouped_threads.h"
#include "device_sim/simd/groups.h"
#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/scheduler.h"

namespace gpusim {

class SimdBackend final : public CpuBackend,
                          public CpuMachineState,
                          public Sleepers,
                          public SharesMemory,
                          public CallsFirst {
 public:
  // False, with a reason, on processors below the baseline.
  static bool available(std::string* why_not);
  std::string name() const override { return "simd"; }
  std::string device() const override;
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override;
  void module_changed() override;
  uint64_t slot(uint32_t core, Slot slot) override { return groups_.slot(core, slot); }
  void set_slot(uint32_t core, Slot slot, uint64_t value) override {
    groups_.set_slot(core, slot, value);
  }
  void set_slots(Slot slot, CoreWord value) override { groups_.set_slots(slot, value); }
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    forget_reach(address);
    const bool done = CpuBackend::set_permissions(core, address, size_bytes, flags);
    note_permissions(address, size_bytes);
    return done;
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    forget_reach(address);
    const bool done = CpuBackend::set_permissions_all(address, size_bytes, flags);
    note_permissions(address, size_bytes);
    return done;
  }
  void start(uint32_t core, uint32_t uop) override;
  void start_all(uint32_t uop) override;
  void stop(uint32_t core) override;
  void start_cta(uint32_t place, uint32_t uop) override;
  void set_cta_slots(uint32_t place, Slot slot, CoreWord value) override;
  uint32_t place(uint32_t core) override { return groups_.place(core); }
  std::span<const Event> run_slice(uint64_t instructions) override;
  std::vector<uint64_t> block_counts() override { return scheduler_.blocks().counts(); }
  CoreTally tally(uint32_t core) override { return groups_.tally(core); }
  CoreTally tally_of_all() override { return groups_.tally_of_all(); }
  std::vector<uint64_t> block_lanes() override { return scheduler_.blocks().lanes(); }
  std::vector<GroupUse> group_use() override { return groups_.use(); }
  void memory_is_shared() override { scheduler_.share_memory(); }
  void let_calls_go_first() override { groups_.let_calls_go_first(); }

  // MachineState (simd_state.cpp).
  uint64_t instructions() override { return groups_.instructions(); }
  std::vector<CoreSnapshot> cores() override { return groups_.snapshot(); }
  std::vector<uint8_t> scheduling() override;
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t> scheduling) override;
  void slots(Slot slot, std::span<uint64_t> values) override { groups_.slots(slot, values); }
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override {
    groups_.set_all_slots(slot, values);
  }
  void set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t> lanes) override;

  uint32_t runnable() const override;
  void find_sleepers(std::span<uint8_t> out) override { groups_.find_sleepers(out); }
  // A core's share of its group.
  static constexpr size_t kSchedulingBytes =
      sizeof(simd::Group) / simd::kMaxLanes + sizeof(Watch) + sizeof(ClassCounts);
  // Pieces of native code made so far.
  // For tests: as on a processor that has no more. Before configure().
  void limit_groups_code(simd::VectorCode most) { groups_code_ = std::min(groups_code_, most); }
  size_t native_variants() const {
    return (native_ ? native_->variants() : 0) + (other_native_ ? other_native_->variants() : 0);
  }
  // As on a host where a process may have few mappings. Before configure().
  void limit_guarded_runs(uint64_t most) { memory_.limit_guarded_runs(most); }
  // Whether native code leaves permissions to the host's page protection.
  bool is_guarded() const { return engine() && engine()->needs_guard(); }
  // Instructions of cores alone in their groups that native code ran.
  uint64_t native_instructions() const { return scheduler_.alone_instructions(); }
  // Times that cores which ran in lockstep went on alone, or the other way round.
  size_t rearrangements() const { return rearrangements_; }
  // Times that cores were moved between groups.
  size_t regroupings() const { return regroupings_; }

 private:
  Memory machine_memory() override { return {memory_.view(), config_.cores, memory_.storage()}; }
  // Permissions of pages from `address` on change: what groups know of them is no longer true.
  void forget_reach(uint64_t address);
  void open_memory() override { memory_.open(); }
  void guard_memory();
  void note_permissions(uint64_t address, uint64_t size_bytes) {
    if (engine()) engine()->permissions_changed(address, size_bytes);
  }
  bool restore_scheduling(std::span<const uint8_t> bytes);
  void make_groups();
  void wake_released(size_t group);
  void report_stuck_ctas();
  void view_machine();
  void connect();
  void rank_late_blocks();
  bool are_cores_close() const;
  void run_rounds(uint64_t instructions);
  uint64_t run_round(uint64_t instructions);

  // Native code.
  std::unique_ptr<native::Engine> make_engine();
  std::unique_ptr<simd::CodeCache> new_code_cache() const;
  void make_code_caches();
  // Of cores alone, whether they are now or not; null: none.
  native::Engine* engine() const {
    if (native_ && native_->alone()) return native_->alone();
    return other_native_ ? other_native_->alone() : nullptr;
  }
  static constexpr uint64_t kLookAtOnce = uint64_t{1} << 40;
  void mark_hot_blocks(uint64_t used);
  void mark_hot_blocks_of_one(uint64_t used);
  void mark_after_barriers(const Block& block);

  // Lockstep or alone.
  bool may_part();
  simd::Gear new_gear() const;
  void arrange(bool alone, bool is_fresh = false);
  bool wants_other_gear(uint64_t used, const simd::Groups::LaneUse& use);

  simd::Machine machine_;
  simd::Groups groups_;
  std::optional<simd::GroupedThreads> ctas_;  // of modules with warps
  simd::Scheduler scheduler_{groups_, machine_, clock_};
  std::vector<simd::BlockTally> block_tallies_;
  ReconvergenceOrder order_;
  size_t regroupings_ = 0;

  simd::VectorCode groups_code_ = simd::TraceCompiler::best();
  std::unique_ptr<simd::CodeCache> native_;  // null: the interpreter only
  uint64_t unmarked_ = 0;    // steps of groups since hot blocks were looked for
  uint64_t natively_ = 0;    // instructions that Engine ran when it was looked at last
  int64_t interpreted_ = 0;  // and those that the interpreter ran since

  // Where cores may run in lockstep or alone: what decides, and the code for what they do not do
  // now.
  std::optional<simd::Gear> gear_;
  std::unique_ptr<simd::CodeCache> other_native_;
  std::vector<uint64_t> counts_alone_;  // of blocks, when lockstep began: what was hot until then
  size_t rearrangements_ = 0;
};

}  // namespace gpusim
