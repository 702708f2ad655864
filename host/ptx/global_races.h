// Accesses of different CTAs of a launch to global memory: two plain ones that touch the same
// bytes, of which one stores, and that nothing can order, are a race.
//
// A CTA (with clusters: the cluster) counts as one here. Two accesses may be ordered if the one's
// CTA had a fence, or an access that acquires or releases, behind it, and the other's had one, or
// any atomic, volatile or relaxed access, before it: by such an access alone many programs learn
// that another block is done, among them examples of the CUDA Programming Guide. Which of these
// really met is not followed. That finds less, and says nothing wrong.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/ptx/check_sites.h"

namespace gpusim::ptx {

class GlobalRaces {
 public:
  struct Access {
    uint32_t unit = 0;  // CTAs that count as one, by the order in which they began
    uint64_t cta = 0;   // its linear number
    uint32_t thread = 0;
    const CheckSite* site = nullptr;
  };
  /// Called at the end of a launch for two accesses that race. `times`: how many such were kept.
  std::function<void(const Access&, const Access&, uint64_t address, uint32_t bytes, size_t times)>
      on_race;

  /// A launch begins.
  void begin();
  /// CTAs that count as one begin; returns their number.
  uint32_t start_unit();
  /// `stored`: the bytes, if it is a store whose value is known.
  void access(const Access& access, uint64_t address, std::span<const uint8_t> stored);
  void synchronise(uint32_t unit) {
    ++synchronised_[unit];
    may_have_met_[unit] = true;
  }
  /// The launch has ended.
  void end();

 private:
  // Words of a launch that are looked at.
  static constexpr size_t kMostWords = 1 << 22;
  static constexpr size_t kMostPairs = 64;  // of the same two lines

  // The latest access of a unit, of a kind.
  struct Cell {
    const CheckSite* site = nullptr;
    uint64_t cta = 0;
    uint32_t unit = 0, epoch = 0;  // epoch: how often the unit had synchronised
    uint32_t value = 0;
    uint16_t thread = 0;
    uint8_t bytes = 0;  // a mask; 0: free
    bool has_value = false;
    bool may_have_met = false;  // the unit, another one, before
    Access access() const { return {unit, cta, thread, site}; }
  };
  using Cells = std::array<Cell, 3>;
  struct Pair {
    Cell first, second;
    uint64_t address;
    uint32_t bytes;
  };
  bool may_be_ordered(const Cell& x, const Cell& y) const;
  void add(Cells& cells, const Cell& now, uint64_t word);

  std::unordered_map<uint64_t, Cells> words_;
  std::vector<uint32_t> synchronised_;                                // per unit
  std::vector<bool> may_have_met_;                                    // per unit
  std::map<std::pair<uint64_t, uint64_t>, std::vector<Pair>> pairs_;  // by lines
};

}  // namespace gpusim::ptx
