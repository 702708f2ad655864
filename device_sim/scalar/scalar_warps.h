// Modules with warps on the scalar machine: the lanes of a warp run in step, one micro-op after the
// other and for each of them lane after lane, in the order and with the patience of core/turns.h.
#pragma once
#include <array>
#include <vector>

#include "device_sim/core/ctas.h"
#include "device_sim/core/order.h"
#include "device_sim/core/turns.h"
#include "device_sim/scalar/scalar_backend.h"

namespace gpusim {

class ScalarWarps final : public Ctas::Threads {
 public:
  explicit ScalarWarps(ScalarBackend& machine) : b_(machine) {}
  // The machine was configured, its module grew, or it is as new.
  void configure();
  void module_changed();
  void reset();

  void start(uint32_t core, uint32_t uop);
  void stop(uint32_t core);
  void start_cta(uint32_t place, uint32_t uop);
  uint32_t place(uint32_t core) const;
  uint32_t runnable() const;
  uint32_t shift() const { return ctas_.shift(); }
  void run_slice(uint64_t instructions);

  // Ctas::Threads.
  const Uop& row(uint32_t core) override;
  uint64_t get(uint32_t core, Slot slot) override;
  void set(uint32_t core, Slot slot, uint64_t value) override;
  void release(uint32_t first, uint32_t lanes) override;

 private:
  // The first six are what core/turns.h knows of lanes.
  struct Warp {
    uint64_t runnable_lanes = 0, active_lanes = 0;
    uint64_t wait_key = kNoKey;  // least among the runnable ones that are not active
    uint32_t call_depth = 0, first_core = 0;
    Turns turns;
    int64_t budget = 0;
    bool gave_way = false;
    std::array<uint64_t, kWarpLanes> keys{};
    const ReconvergenceOrder* order = nullptr;

    uint64_t runnable() const { return runnable_lanes; }
    uint64_t active() const { return active_lanes; }
    uint64_t key(uint32_t lane) const { return keys[lane]; }
    uint64_t least_key(uint64_t mask) const;
    uint32_t activate(uint64_t key);
    void rest() { active_lanes = 0; }
    uint32_t depth() const { return call_depth; }
  };
  Warp& warp_of(uint32_t core) { return warps_[core / kWarpLanes]; }
  const Warp& warp_of(uint32_t core) const { return warps_[core / kWarpLanes]; }
  uint64_t key_at(const Warp& w, uint32_t uop) const {
    return key_of(w.call_depth, order_.rank()[uop]);
  }
  void set_keys(Warp& w, uint64_t lanes, uint64_t key);
  void stop_lane(Warp& w, uint32_t lane, const Event& event);
  void stop_at_limit(Warp& w);
  int64_t to_limit(const Warp& w) const;
  uint64_t run(Warp& w, uint64_t instructions);
  uint32_t first_of_slice(Warp& w);
  // Each returns where the active lanes go on, or kNoUop where the warp has to stop.
  uint32_t schedule(Warp& w) { return w.budget <= 0 ? kNoUop : gpusim::schedule(w.turns, w); }
  uint32_t step(Warp& w, uint32_t at);
  uint32_t step_values(Warp& w, uint32_t at);
  uint32_t go_to(Warp& w, uint32_t to);
  uint32_t part(Warp& w, const std::array<uint32_t, kWarpLanes>& next, uint64_t lanes);
  uint32_t wait(Warp& w, uint32_t at);
  uint32_t end_threads(Warp& w, const Uop& u);
  uint32_t give_way(Warp& w, const Uop& u);
  void complete_block(Warp& w, const Uop& u);

  ScalarBackend& b_;
  ReconvergenceOrder order_;
  Ctas ctas_;
  std::vector<Warp> warps_;
};

}  // namespace gpusim
