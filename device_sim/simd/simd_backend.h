// Cores in lockstep groups on SIMD lanes, groups spread over host threads.
#pragma once
#include <memory>

#include "device_sim/core/cpu_backend.h"
#include "device_sim/core/order.h"
#include "device_sim/simd/group.h"
#include "device_sim/simd/jit/code_cache.h"

namespace gpusim {

class SimdBackend final : public CpuBackend {
 public:
  // False, with a reason, on processors below the baseline.
  static bool available(std::string* why_not);
  std::string name() const override { return "simd"; }
  std::string device() const override;
  void configure(const Module& module, const MachineConfig& config) override;
  void module_changed() override;
  uint64_t slot(uint32_t core, Slot slot) override;
  void set_slot(uint32_t core, Slot slot, uint64_t value) override;
  void set_slots(Slot slot, CoreWord value) override;
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    forget_reach(address);
    return CpuBackend::set_permissions(core, address, size_bytes, flags);
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    forget_reach(address);
    return CpuBackend::set_permissions_all(address, size_bytes, flags);
  }
  void start(uint32_t core, uint32_t uop) override;
  void stop(uint32_t core) override;
  uint32_t place(uint32_t core) override;
  std::span<const Event> run_slice(uint64_t instructions) override;
  uint32_t runnable() const override;
  std::vector<uint64_t> block_counts() override;
  CoreTally tally(uint32_t core) override;
  // Pieces of native code made so far.
  size_t native_variants() const { return native_ ? native_->variants() : 0; }

 private:
  // Permissions of pages from `address` on change: what groups know of them is no longer true.
  void forget_reach(uint64_t address);
  simd::Group& group_of(uint32_t core) { return groups_[core / config_.group_width]; }
  uint32_t lane_of(uint32_t core) const { return core % config_.group_width; }
  void view_machine();
  void mark_hot_blocks();
  void run_group(simd::Group& group, uint64_t instructions, std::vector<uint64_t>& block_counts,
                 std::vector<Event>& events);

  simd::Machine machine_;
  std::unique_ptr<simd::CodeCache> native_;  // null: the interpreter only
  uint64_t slices_ = 0;
  std::vector<simd::BlockTally> block_tallies_;
  ReconvergenceOrder order_;
  LazyMemory slots_;  // [group][slot][kMaxLanes]
  LazyMemory group_storage_;
  std::span<simd::Group> groups_;
  std::vector<uint64_t> block_counts_;
};

}  // namespace gpusim
