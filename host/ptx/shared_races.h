// The order of the threads of one CTA, and their accesses to its shared memory: two that touch the
// same bytes, of which one stores, and that nothing orders, are a race.
//
// Barriers order (of the CTA, of a number of threads, of a warp), and atomic operations, volatile
// and relaxed accesses where fences stand beside them, as in host/races.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device_sim/core/cta.h"
#include "host/ptx/accessed_words.h"
#include "host/races/clocks.h"

namespace gpusim::ptx {

class SharedRaces {
 public:
  struct Arrival {
    uint32_t thread;
    const CheckSite* site;
  };
  struct Access {
    uint32_t thread = 0;
    const CheckSite* site = nullptr;
  };
  /// Called for two accesses that race, the one seen first before the other.
  std::function<void(const Access&, const Access&, uint64_t offset, uint32_t bytes)> on_race;
  /// A barrier of the whole CTA has opened; who came to it.
  std::function<void(std::span<const Arrival>, uint32_t barrier)> on_barrier;

  SharedRaces(uint32_t threads, uint64_t bytes);
  /// Another CTA.
  void reset();

  /// `stored`: the bytes, if it is a store whose value is known.
  void access(const Access& access, uint64_t offset, std::span<const uint8_t> stored);
  /// Not of shared memory: only what it says of order.
  void synchronises(uint32_t thread, const CheckSite& site, uint64_t address);
  void fence(uint32_t thread) { clocks_.fence(thread); }
  void arrive(uint32_t thread, const CheckSite& site, uint32_t barrier, uint32_t threads);
  void pass(uint32_t thread, const CheckSite& site, uint32_t barrier, uint32_t threads);

 private:
  using Words = AccessedWords<WordAccess>;
  struct Barrier {
    uint64_t generation = 0;
    std::vector<Arrival> arrivals;  // of the whole CTA
    std::vector<uint32_t> seen;     // of some threads
  };
  bool has_seen(uint32_t thread, const WordAccess& cell) const {
    return cell.clock <= floor_[cell.thread] || clocks_.has_seen(thread, cell.thread, cell.clock);
  }
  void access_part(const Access& access, const WordPart& part);
  bool is_of_all(uint32_t threads) const { return threads == 0 || threads >= threads_; }
  void open(Barrier& barrier, uint32_t number);

  const uint32_t threads_;
  host::races::Clocks clocks_;
  std::vector<uint32_t> floor_;  // per thread: what all have seen of it
  Words words_;
  // Those of the CTA, and the cluster's, at which here only the CTA's threads count.
  static constexpr uint32_t kBarriers = kCtaBarriers + 1;
  static_assert(CheckSite::kClusterBarrier == kCtaBarriers);
  std::array<Barrier, kBarriers> barriers_;
  std::vector<std::array<uint64_t, kBarriers>> generation_;  // per thread: at its arrival
  std::vector<std::vector<uint32_t>> warp_seen_;             // per warp
};

}  // namespace gpusim::ptx
