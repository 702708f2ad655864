// One cache, functionally: which lines it holds, not how long anything takes.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "host/caches/shape.h"

namespace gpusim::host {

// Lines are numbers: address / line size.
class Cache {
 public:
  Cache(const CacheShape& shape, uint32_t line_bytes)
      : set_mask_(shape.sets(line_bytes) - 1),
        ways_(shape.ways),
        is_lru_(shape.replacement == Replacement::kLru),
        lines_(shape.sets(line_bytes) * shape.ways, kNone),
        trees_(is_lru_ ? 0 : shape.sets(line_bytes), 0) {}

  // Whether the line is there; then it is the most recently used one.
  bool touch(uint64_t line, bool makes_dirty) {
    uint64_t* const set = lines_.data() + (line & set_mask_) * ways_;
    for (uint32_t way = 0; way < ways_; ++way) {
      if (set[way] >> 1 != line) continue;
      set[way] |= makes_dirty ? 1 : 0;
      use(line & set_mask_, set, way);
      return true;
    }
    return false;
  }

  struct Victim {
    bool is_dirty = false;
    uint64_t line = 0;
  };
  // Puts in a line that is not there. The victim is the least recently used line, or a free place.
  Victim fill(uint64_t line, bool dirty) {
    const uint64_t index = line & set_mask_;
    uint64_t* const set = lines_.data() + index * ways_;
    uint32_t way = 0;
    while (way < ways_ && set[way] != kNone) ++way;
    if (way == ways_) way = is_lru_ ? ways_ - 1 : tree_victim(trees_[index]);
    const uint64_t old = set[way];
    set[way] = line << 1 | (dirty ? 1 : 0);
    use(index, set, way);
    return old == kNone ? Victim{} : Victim{(old & 1) != 0, old >> 1};
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};

  // LRU: a set's lines by their last use, the latest first.
  // Tree PLRU (ways a power of two): node n's bit says in which half the older uses are; children
  // 2n and 2n + 1, root 1.
  void use(uint64_t index, uint64_t* set, uint32_t way) {
    if (is_lru_) {
      const uint64_t line = set[way];
      std::copy_backward(set, set + way, set + way + 1);
      set[0] = line;
      return;
    }
    uint64_t& tree = trees_[index];
    for (uint32_t node = ways_ + way; node > 1; node /= 2) {
      const uint64_t bit = uint64_t{1} << (node / 2);
      tree = node & 1 ? tree & ~bit : tree | bit;  // away from here
    }
  }
  uint32_t tree_victim(uint64_t tree) const {
    uint32_t node = 1;
    while (node < ways_) node = 2 * node + static_cast<uint32_t>(tree >> node & 1);
    return node - ways_;
  }

  uint64_t set_mask_;
  uint32_t ways_;
  bool is_lru_;
  std::vector<uint64_t> lines_;  // [set][way]: line << 1 | dirty, or kNone
  std::vector<uint64_t> trees_;  // [set]
};

}  // namespace gpusim::host
