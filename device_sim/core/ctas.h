// CTAs and warps of a machine: which threads live, which wait for others of their warp or CTA, and
// when those go on. Who runs the threads says when one comes to a row of warps, and lets it go on
// behind that row when told. Threads of a CTA have to be run by one host thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "device_sim/core/cta.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

class Ctas {
 public:
  // The threads, by their cores.
  class Threads {
   public:
    virtual ~Threads() = default;
    virtual const Uop& row(uint32_t core) = 0;  // at which it waits
    virtual uint64_t get(uint32_t core, Slot slot) = 0;
    virtual void set(uint32_t core, Slot slot, uint64_t value) = 0;
    // Threads of the warp that begins with core `first` go on behind their rows.
    virtual void release(uint32_t first, uint32_t lanes) = 0;
  };
  // Of a warp, one bit per lane.
  struct Warp {
    uint32_t alive = 0;    // started, and not ended
    uint32_t waiting = 0;  // for others of the warp, at a row of warps
    uint32_t arrived = 0;  // wait for other warps, at barrier `barrier`
    uint8_t barrier = 0;
    // Of the cluster's barrier: arrived in the phase that lasts; arrived, and still has to wait for
    // that; waits.
    uint32_t in_cluster = 0, owes_wait = 0, at_cluster = 0;
    uint32_t blocked() const { return waiting | arrived | at_cluster; }
  };

  // All places are empty. `threads` must outlive this.
  void configure(uint32_t cores, uint32_t cta_threads, uint32_t cluster_ctas, Threads& threads);
  uint32_t cta_threads() const { return cta_threads_; }
  uint32_t shift() const { return shift_; }
  uint32_t places() const { return static_cast<uint32_t>(ctas_.size()); }
  uint32_t place_of(uint32_t core) const { return core >> shift_; }
  const Warp& warp_of(uint32_t core) const { return warps_[core / kWarpLanes]; }

  // A new CTA: all its threads live, its barriers are as new.
  void begin(uint32_t place);
  // The thread goes on, and lives.
  void start(uint32_t core);
  // Threads of a warp ended; others may go on therefore. True: the CTA has no living threads any
  // more.
  bool end(uint32_t first, uint32_t lanes);
  // Threads of a warp came to their rows and wait; they or others may go on therefore.
  void wait(uint32_t first, uint32_t lanes);
  // Which of the lanes may not come to that row of the cluster's barrier.
  uint32_t misusing(uint32_t first, uint32_t lanes, const Uop& u) const {
    const uint32_t owe = warps_[first / kWarpLanes].owes_wait;
    return lanes & (u.aux == static_cast<uint8_t>(CtaSync::kClusterArrive) ? owe : ~owe);
  }
  // The same of all living threads of a warp at a cta_sync where they wait, or a cta_reduce:
  // `is_true` are the lanes whose predicate is; nullopt: none of the lanes has one.
  void arrive(uint32_t first, uint32_t lanes, uint32_t barrier, uint32_t threads,
              std::optional<uint32_t> is_true);
  // A short way for CTAs that run together: whether the lanes of `cores` cores from `first` on are
  // all threads that this barrier, as new, waits for. Then they may just go on.
  bool opens(uint32_t first, uint32_t cores, uint64_t lanes, uint32_t barrier,
             uint32_t threads) const;

  // Whether all living threads of a CTA, of which there are some, wait for each other, or for those
  // of its cluster, all of which wait.
  bool is_stuck(uint32_t place) const;
  // Calls f(core) for each thread that waits; they do so no longer.
  void give_up(uint32_t place, const std::function<void(uint32_t)>& f);

 private:
  struct Barrier {
    uint32_t arrived = 0;   // threads
    uint32_t expected = 0;  // 0: all
    uint32_t popc = 0;      // of predicates
    bool all = true, any = false;
    bool reduces = false;  // some of its threads want a result
  };
  struct Cluster {
    uint32_t alive = 0, arrived = 0;  // threads
  };
  struct Cta {
    uint32_t live_warps = 0;
    std::array<Barrier, kCtaBarriers> barriers;
  };
  const Uop& row(uint32_t first, uint32_t lane) const { return threads_->row(first + lane); }
  uint32_t mask_of(uint32_t first, uint32_t lane) const;
  uint32_t ready_members(uint32_t first, uint32_t lane) const;
  void finish(uint32_t first, uint32_t members);
  bool try_arrive(uint32_t first);
  void settle(uint32_t first);
  void settle_barrier(uint32_t place, uint32_t number);
  Cluster& cluster_of(uint32_t place) { return clusters_[place / cluster_ctas_]; }
  void come_to_cluster(uint32_t first, uint32_t lanes, const Uop& u);
  void settle_cluster(uint32_t place);
  bool is_blocked(uint32_t place) const;

  Threads* threads_ = nullptr;
  uint32_t cta_threads_ = 0, shift_ = 5, cluster_ctas_ = 1;
  std::vector<Warp> warps_;
  std::vector<Cta> ctas_;
  std::vector<Cluster> clusters_;
};

// The barrier that a thread's row names, and of how many threads; false: there is none such.
struct BarrierUse {
  uint64_t barrier = 0, threads = 0;
  bool is_valid() const { return barrier < kCtaBarriers && BarrierFields::is_count(threads); }
};
template <class Get>
BarrierUse barrier_of(const Uop& u, Get get) {
  const BarrierFields f = BarrierFields::unpack(u.imm);
  return {f.barrier_in_slot ? static_cast<uint32_t>(get(u.b)) : f.barrier,
          f.threads_in_slot ? static_cast<uint32_t>(get(u.c)) : f.threads};
}
constexpr bool is_of_cluster(const Uop& u) { return u.op == Op::cta_sync && is_of_cluster(u.aux); }
constexpr bool is_of_barrier(const Uop& u) {
  return (u.op == Op::cta_sync || u.op == Op::cta_reduce) && !is_of_cluster(u);
}

}  // namespace gpusim
