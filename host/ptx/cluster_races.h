// Accesses of different CTAs of a cluster to shared memory of one of them: two that touch the same
// bytes, of which one stores, and that nothing orders, are a race.
//
// A CTA counts as one here: what one of its threads has seen, all have. That finds less, and says
// nothing wrong. The cluster's barrier orders, and atomic operations, volatile and relaxed accesses
// where fences stand beside them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "host/ptx/accessed_words.h"
#include "host/races/clocks.h"

namespace gpusim::ptx {

class ClusterRaces {
 public:
  struct Access {
    uint32_t rank = 0, thread = 0;  // of the CTA in its cluster, and in the CTA
    const CheckSite* site = nullptr;
  };
  /// Called for two accesses that race, the one seen first before the other. `owner`: whose memory.
  std::function<void(const Access&, const Access&, uint32_t owner, uint64_t offset, uint32_t bytes)>
      on_race;

  ClusterRaces(uint32_t ctas, uint32_t threads, uint64_t bytes);
  /// Another cluster.
  void reset();

  /// `stored`: the bytes, if it is a store whose value is known.
  void access(const Access& access, uint32_t owner, uint64_t offset,
              std::span<const uint8_t> stored);
  /// What an access to any memory says of order.
  void synchronises(const Access& access, uint64_t address);
  void fence(uint32_t rank) { clocks_.fence(rank); }
  /// A thread has arrived at the cluster's barrier; it has waited there.
  void arrive(uint32_t rank, uint32_t thread);
  void pass(uint32_t rank, uint32_t thread);

 private:
  struct Cell : WordAccess {
    uint32_t arrivals = 0;
    uint16_t rank = 0;
  };
  using Words = AccessedWords<Cell>;
  // Of a CTA: how often its threads have come to the cluster's barrier, and have gone on from it.
  struct Progress {
    uint32_t least_arrivals = 0, most_waits = 0;
    uint32_t left = 0;  // threads that have arrived no more often
  };
  bool is_ordered(const Cell& cell, uint32_t rank) const {
    return cell.rank == rank || progress_[rank].most_waits > cell.arrivals ||
           clocks_.has_seen(rank, cell.rank, cell.clock);
  }
  void access_part(const Access& access, uint32_t owner, const WordPart& part);

  const uint32_t threads_;
  const uint64_t words_per_cta_;
  host::races::Clocks clocks_;
  Words words_;
  std::vector<Progress> progress_;          // per CTA
  std::vector<uint32_t> arrivals_, waits_;  // per thread of the cluster
};

}  // namespace gpusim::ptx
