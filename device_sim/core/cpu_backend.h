// What the backends that run on the host share: guest memory lives in this process.
#pragma once
#include <algorithm>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/check_ctas.h"
#include "device_sim/core/effects.h"
#include "device_sim/core/guest_memory.h"

namespace gpusim {

class CpuBackend : public Backend {
 public:
  bool read_memory(uint32_t core, uint64_t address, std::span<uint8_t> out) override {
    return memory_.read(core, address, out);
  }
  bool write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) override {
    return memory_.write(core, address, in);
  }
  bool write_memory_all(uint64_t address, std::span<const uint8_t> in) override {
    return memory_.write_all(address, in);
  }
  bool write_windows(uint64_t address, std::span<const CoreWord> words) override {
    return memory_.write_windows(address, words);
  }
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) override {
    return memory_.fill_zero(core, address, size_bytes);
  }
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    return memory_.set_permissions(core, address, size_bytes, flags);
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    return memory_.set_permissions_all(address, size_bytes, flags);
  }
  uint8_t permissions(uint32_t core, uint64_t address) override {
    return memory_.permissions(core, address);
  }
  std::span<uint8_t> cta_memory(uint32_t place) override { return memory_.cta_memory(place); }
  std::span<const uint64_t> journal(uint32_t core) override { return memory_.journal(core); }
  void clear_journals() override { memory_.clear_journals(); }
  void set_slots(Slot slot, CoreWord value) override {
    for (uint32_t core = 0; core < config_.cores; ++core) set_slot(core, slot, value.of(core));
  }
  void start_all(uint32_t uop) override {
    for (uint32_t core = 0; core < config_.cores; ++core) start(core, uop);
  }
  CoreTally tally_of_all() override {
    CoreTally sum;
    for (uint32_t core = 0; core < config_.cores; ++core) sum += tally(core);
    return sum;
  }

 protected:
  // Fields that every CPU backend takes from a configuration.
  void configure_common(const Module& module, const MachineConfig& config, uint32_t lanes_shift) {
    check_ctas(module, config);
    module_ = &module;
    config_ = config;
    memory_.configure(config, lanes_shift);
    view_code();
  }
  void view_code() {
    code_ = CodeView{module_->uops.data(), module_->code.uop_at.data(), module_->code.text_base,
                     module_->code.uop_at.size(), module_->code.pc_shift};
  }
  void sort_events() {
    const auto by_core = [](const Event& x, const Event& y) { return x.core < y.core; };
    // One thread runs groups in their order.
    if (!std::is_sorted(events_.begin(), events_.end(), by_core))
      std::sort(events_.begin(), events_.end(), by_core);
  }

  const Module* module_ = nullptr;
  MachineConfig config_;
  GuestMemory memory_;
  CodeView code_;
  std::vector<Event> events_;
};

// Events of a core: at the end of block `u`; at micro-op `at`; before going on at `next`.
inline Event service_event(uint32_t core, const Uop& u) {
  return {.core = core, .status = CoreStatus::kService, .service = static_cast<Service>(u.aux),
          .slot = u.d, .uop = u.target()};
}
inline Event fault_event(uint32_t core, uint32_t at, const StopInfo& stop) {
  return {.core = core, .status = CoreStatus::kFault, .fault = stop.fault, .uop = at,
          .address = stop.address};
}
inline Event jump_event(uint32_t core, uint32_t at, uint64_t pc) {
  return {.core = core, .status = CoreStatus::kJump, .uop = at, .address = pc};
}
inline Event limit_event(uint32_t core, uint32_t next) {
  return {.core = core, .status = CoreStatus::kLimit, .uop = next};
}

}  // namespace gpusim
