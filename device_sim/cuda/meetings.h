// Threads of CTAs on a device: which warps run in a slice, and what their threads wait for. What
// threads come to in a slice is settled by the host when it is over (core/ctas.h).
#pragma once
#include <span>
#include <vector>

#include "device_sim/core/ctas.h"
#include "device_sim/cuda/core_state.h"

namespace gpusim::cuda {

class Meetings final : private Ctas::Threads {
 public:
  // What the machine does for them.
  class Cores {
   public:
    virtual ~Cores() = default;
    virtual uint64_t slot(uint32_t core, Slot slot) = 0;
    virtual void set_slot(uint32_t core, Slot slot, uint64_t value) = 0;
    virtual void run_from(uint32_t core, uint32_t uop) = 0;  // in the next slice
    virtual void halt(uint32_t core) = 0;
  };
  // A thread that came to a row of warps, or to its end.
  struct Came {
    uint32_t core = 0, uop = 0;
    bool has_ended = false;
  };

  // `module` and `machine` must outlive this.
  void configure(const Module& module, const MachineConfig& config, Cores& machine);
  void reset();  // all places are empty

  void start(uint32_t core, uint32_t uop);
  void stop(uint32_t core);
  void start_cta(uint32_t place, uint32_t uop);
  uint32_t shift() const { return ctas_.shift(); }
  // Lanes of the warp of this core whose threads have not ended.
  uint32_t alive(uint32_t core) const { return ctas_.warp_of(core).alive; }
  // After a slice: those that came, by their cores. Adds to `events` ends of CTAs, and faults of
  // threads that came where they may not or wait for ever.
  void settle(std::span<const Came> came, std::vector<Event>& events);

 private:
  const Uop& row(uint32_t core) override { return module_->uops[row_of_[core]]; }
  uint64_t get(uint32_t core, Slot slot) override { return machine_->slot(core, slot); }
  void set(uint32_t core, Slot slot, uint64_t value) override {
    machine_->set_slot(core, slot, value);
  }
  void release(uint32_t first, uint32_t lanes) override;
  void wait(uint32_t first, uint32_t lanes, uint32_t uop, std::vector<Event>& events);

  const Module* module_ = nullptr;
  MachineConfig config_;
  Cores* machine_ = nullptr;
  Ctas ctas_;
  std::vector<uint32_t> row_of_;  // per core: where it waits
};

}  // namespace gpusim::cuda
