// Cores by the time of what they do next, the earliest first; of the same time, the first core.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/chip/shape.h"

namespace gpusim::host::chip {

// A tree of matches: each node holds the earlier of two. To put in a core or take it out goes one
// way from a leaf to the root, whatever the others do.
class CoreQueue {
 public:
  static constexpr Ticks kNever = ~Ticks{0};

  explicit CoreQueue(uint32_t cores)
      : leaves_(std::bit_ceil(std::max(cores, 2u))), times_(leaves_, kNever), winners_(leaves_) {
    for (uint32_t node = leaves_; node-- > 1;)
      winners_[node] = 2 * node >= leaves_ ? 2 * node - leaves_ : winners_[2 * node];
  }
  bool empty() const { return first() == kNever; }
  Ticks first() const { return times_[winners_[1]]; }
  uint32_t first_core() const { return winners_[1]; }
  bool has(uint32_t core) const { return times_[core] != kNever; }
  void put(uint32_t core, Ticks at) {
    times_[core] = at;
    uint32_t node = (leaves_ + core) / 2;
    // The core that lies beside it under the lowest node.
    uint32_t winner = core & ~1u;
    winner += times_[winner | 1] < times_[winner];
    // Above a node that it neither won nor wins, all is as it was.
    for (;; node /= 2) {
      const uint32_t won = std::exchange(winners_[node], winner);
      if (node <= 1 || (won != core && winner != core)) return;
      const uint32_t other = winners_[node ^ 1];
      const bool other_is_first =
          times_[other] < times_[winner] || (times_[other] == times_[winner] && other < winner);
      winner = other_is_first ? other : winner;
    }
  }
  void take_out(uint32_t core) { put(core, kNever); }

 private:
  uint32_t leaves_;  // a power of two
  std::vector<Ticks> times_;
  std::vector<uint32_t> winners_;  // of each node but the leaves, from 1 on
};

}  // namespace gpusim::host::chip
