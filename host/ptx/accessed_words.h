// The words of shared memory with the latest accesses to each, for those who look for races.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "host/ptx/check_sites.h"

namespace gpusim::ptx {

// What an access touches of a word.
struct WordPart {
  uint64_t word = 0;
  uint8_t bytes = 0;  // a mask
  uint32_t value = 0;
  bool has_value = false;
};

// The latest access of somebody to some bytes of a word.
struct WordAccess {
  const CheckSite* site = nullptr;
  uint32_t clock = 0, value = 0;
  uint16_t thread = 0;
  uint8_t bytes = 0;  // a mask; 0: free
  bool has_value = false;
};

// `Cell`: a WordAccess, and what else tells which accesses are ordered.
template <class Cell>
class AccessedWords {
 public:
  static constexpr uint32_t kWordBytes = 4;
  using Cells = std::array<Cell, 4>;

  explicit AccessedWords(uint64_t words) : words_(words) {}
  uint64_t size() const { return words_.size(); }
  /// Forgets all accesses.
  void reset() { ++generation_; }

  Cells& cells(uint64_t number) {
    Word& word = words_[number];
    if (word.generation != generation_) {
      word.cells = {};
      word.generation = generation_;
    }
    return word.cells;
  }

  /// Calls race(earlier access, offset of the first byte, bytes) for accesses to the same bytes as
  /// `now` that race with it, and keeps `now` in the place of one that no longer matters.
  template <class Ordered, class Race>
  void add(uint64_t number, const Cell& now, Ordered is_ordered, Race race) {
    Cells& all = cells(number);
    const bool writes = now.site->writes();
    for (Cell& c : all) {
      const uint8_t common = c.bytes & now.bytes;
      if (common == 0) continue;
      const bool ordered = is_ordered(c);
      // Threads that store the same make no difference to each other.
      if (!ordered && (writes || c.site->writes()) && !(c.site->is_strong && now.site->is_strong) &&
          !store_the_same(c, now, common))
        race(c, number * kWordBytes + static_cast<uint64_t>(std::countr_zero(common)),
             static_cast<uint32_t>(std::popcount(common)));
      // Whatever races with that one, and comes later, races with this one, too. Not so where only
      // this one is strong.
      const bool is_as_weak = c.site->is_strong || !now.site->is_strong;
      if (ordered && is_as_weak && (writes || !c.site->writes()))
        c.bytes &= static_cast<uint8_t>(~now.bytes);
    }
    auto gone = std::find_if(all.begin(), all.end(), [](const Cell& c) { return c.bytes == 0; });
    if (gone == all.end())
      gone = std::find_if(all.begin(), all.end(), [](const Cell& c) { return !c.site->writes(); });
    if (gone == all.end()) gone = all.begin();
    std::move(gone + 1, all.end(), gone);
    all.back() = now;
  }

  /// Calls f(WordPart) for the words of an access. `stored`: its bytes, if they are known.
  template <class F>
  static void for_each(uint64_t offset, uint64_t bytes, std::span<const uint8_t> stored, F f) {
    const uint64_t end = offset + bytes;
    for (uint64_t at = offset; at < end;) {
      const uint64_t begin = at % kWordBytes;
      const uint64_t stop = std::min<uint64_t>(kWordBytes, begin + end - at);
      const auto mask = static_cast<uint8_t>((0xf << begin) & (0xf >> (kWordBytes - stop)));
      uint32_t value = 0;
      for (uint64_t k = begin; k < stop && !stored.empty(); ++k)
        value |= uint32_t{stored[at - offset + k - begin]} << 8 * k;
      f(WordPart{at / kWordBytes, mask, value, !stored.empty()});
      at += stop - begin;
    }
  }

 private:
  struct Word {
    uint64_t generation = 0;  // of which the cells are
    Cells cells;
  };
  static bool store_the_same(const Cell& x, const Cell& y, uint8_t bytes) {
    uint32_t mask = 0;
    for (uint32_t k = 0; k < kWordBytes; ++k)
      if (bytes >> k & 1) mask |= 0xffu << 8 * k;
    return x.has_value && y.has_value && ((x.value ^ y.value) & mask) == 0;
  }

  std::vector<Word> words_;
  uint64_t generation_ = 1;
};

/// What an access says of the order between `who` and others, of whom each is one in `clocks`.
template <class Clocks>
void synchronise(Clocks& clocks, uint32_t who, const CheckSite& site, uint64_t address) {
  if (!site.is_strong) return;
  const uint64_t word = address / 8;
  if (site.releases) clocks.fence(who);
  if (site.kind != CheckSite::Kind::kStore) clocks.observe(who, word);
  if (site.writes()) clocks.publish(who, word);
  if (site.acquires) clocks.fence(who);
}

}  // namespace gpusim::ptx
