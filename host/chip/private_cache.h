// A cache with states of its lines: one core's own, a tile's or a slice of the shared one.
#pragma once
#include <cstdint>
#include <optional>

#include "host/chip/divider.h"
#include "host/chip/huge_pages.h"
#include "host/chip/shape.h"

namespace gpusim::host::chip {

// Without coherence: kExclusive is clean, kModified dirty.
enum class LineState : uint8_t { kInvalid, kShared, kExclusive, kModified };

// LRU. Lines are numbers below 2^62: address / line size.
class StateCache {
 public:
  StateCache() = default;
  // `slices`: one of so many, between which chunks of so many lines are dealt out.
  StateCache(const CacheShape& shape, uint32_t line_bytes, HugePool& pool, uint32_t slices = 1,
             uint32_t chunk = 1)
      : mask_(shape.sets(line_bytes) - 1),
        ways_(shape.ways),
        is_slice_(slices != 1),
        all_chunks_(uint64_t{slices} * chunk),
        chunk_(chunk),
        entries_(static_cast<uint64_t*>(
            pool.take(shape.sets(line_bytes) * shape.ways * sizeof(uint64_t)))) {}

  // The line's entry, which is then the most recently used one; null: it is not there.
  uint64_t* touch(uint64_t line) { return touch(line, set_of(line), ways_); }
  // The same, and more, of a cache that is no slice: for loops that keep it in registers.
  class View {
   public:
    explicit View(StateCache& cache)
        : entries_(cache.entries_), mask_(cache.mask_), ways_(cache.ways_) {}
    uint64_t* touch(uint64_t line) const {
      return StateCache::touch(line, entries_ + (line & mask_) * ways_, ways_);
    }
    void prefetch(uint64_t line) const { __builtin_prefetch(entries_ + (line & mask_) * ways_, 1); }

   private:
    uint64_t* entries_;
    uint64_t mask_;
    uint32_t ways_;
  };
  static LineState state(uint64_t entry) { return static_cast<LineState>(entry & 3); }
  static void set_state(uint64_t* entry, LineState s) {
    *entry = (*entry & ~uint64_t{3}) | static_cast<uint64_t>(s);
  }
  uint64_t* find(uint64_t line) {
    uint64_t* const set = set_of(line);
    for (uint32_t way = 0; way < ways_; ++way)
      if (set[way] >> 2 == line && (set[way] & 3) != 0) return &set[way];
    return nullptr;
  }

  void prefetch(uint64_t line) const { __builtin_prefetch(set_of(line), 1); }

  struct Victim {
    uint64_t line;
    LineState state;
  };
  // Puts in a line that is not there, and says which one had to go.
  std::optional<Victim> fill(uint64_t line, LineState state) {
    uint64_t* const set = set_of(line);
    uint32_t way = ways_ - 1;
    for (uint32_t i = 0; i < ways_; ++i)
      if ((set[i] & 3) == 0) {
        way = i;
        break;
      }
    const uint64_t old = set[way];
    for (uint32_t i = way; i > 0; --i) set[i] = set[i - 1];
    set[0] = line << 2 | static_cast<uint64_t>(state);
    if ((old & 3) == 0) return std::nullopt;
    return Victim{old >> 2, static_cast<LineState>(old & 3)};
  }
  // What it was; kInvalid: it was not there.
  LineState drop(uint64_t line) {
    uint64_t* const entry = find(line);
    if (!entry) return LineState::kInvalid;
    const LineState was = state(*entry);
    *entry = 0;
    return was;
  }

 private:
  static uint64_t* touch(uint64_t line, uint64_t* set, uint32_t ways) {
    if (set[0] >> 2 == line && (set[0] & 3) != 0) return set;
    for (uint32_t way = 1; way < ways; ++way) {
      if (set[way] >> 2 != line || (set[way] & 3) == 0) continue;
      const uint64_t entry = set[way];
      for (uint32_t i = way; i > 0; --i) set[i] = set[i - 1];
      set[0] = entry;
      return set;
    }
    return nullptr;
  }
  uint64_t* set_of(uint64_t line) const {
    const uint64_t index = is_slice_ ? all_chunks_.quotient(line) * chunk_ + line % chunk_ : line;
    return entries_ + (index & mask_) * ways_;
  }

  uint64_t mask_ = 0;
  uint32_t ways_ = 0;
  bool is_slice_ = false;
  Divider all_chunks_;
  uint32_t chunk_ = 1;
  uint64_t* entries_ = nullptr;  // [set][way], by last use: line << 2 | state; the pool's
};

}  // namespace gpusim::host::chip
