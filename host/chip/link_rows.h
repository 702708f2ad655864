// When the links of rows and columns are taken: of a mesh, torus or ring.
//
// Messages go straight on along a row, and each link is taken as long after the one before as a
// router and a link take. So time is counted from another zero at each link: the further along the
// row, the later. In this skewed time a message that meets nobody takes all of its links at once.
// A word has a bit per link of a row, for one cycle of skewed time; what a message of five flits
// takes of 32 links is five words, one behind the other.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "host/chip/huge_pages.h"
#include "host/chip/shape.h"
#include "host/chip/span_calendar.h"

namespace gpusim::host::chip {

// As with a calendar per link: each gives the first free place at or after the time asked for.
class LinkRows {
 public:
  static constexpr uint32_t kLinks = 32;          // of a row, at most
  static constexpr uint32_t kMostHopCycles = 64;  // else there are too many words

  // Nothing is taken yet. `hop_cycles`: from one link to the next.
  LinkRows(uint32_t rows, uint32_t hop_cycles);

  // Takes `count` links of a row one after the other, from `first` on, for `cycles` each; the first
  // one at or after cycle `at`. Calls piece(link, count, cycle) for links that are taken without a
  // wait between them, with the cycle of the first. Returns when the last one begins. `now`: no
  // request will ever arrive before.
  template <class Piece>
  uint64_t take(uint32_t row, uint32_t first, uint32_t count, uint64_t at, uint32_t cycles,
                uint64_t now, Piece piece) {
    Row& r = rows_[row];
    r.used[first] += cycles;
    r.used[first + count] -= cycles;
    uint32_t left = ~uint32_t{0} >> (kLinks - count) << first;
    uint64_t skewed = at + skew(first);
    const uint64_t end = end_of_map(now);
    for (;;) {
      // Which of them are taken, in the way of the message.
      uint32_t taken = left;
      const bool is_near = skewed >= now && skewed + cycles <= std::min(end, r.far);
      if (is_near) {
        uint32_t* const words = words_of(row, skewed, cycles);
        taken = 0;
        const uint32_t at_word = skewed & mask_;
        if (at_word + cycles <= mask_ + 1) {
          for (uint32_t i = 0; i < cycles; ++i) taken |= words[at_word + i];
        } else {
          for (uint32_t i = 0; i < cycles; ++i) taken |= words[(at_word + i) & mask_];
        }
        taken &= left;
        const uint32_t free = taken == 0 ? left : left & ((taken & -taken) - 1);
        if (free != 0) {
          if (at_word + cycles <= mask_ + 1) {
            for (uint32_t i = 0; i < cycles; ++i) words[at_word + i] |= free;
          } else {
            for (uint32_t i = 0; i < cycles; ++i) words[(at_word + i) & mask_] |= free;
          }
          const auto link = static_cast<uint32_t>(std::countr_zero(left));
          piece(link, static_cast<uint32_t>(std::popcount(free)), skewed - skew(link));
        }
        if (taken == 0) break;
      }
      const auto link = static_cast<uint32_t>(std::countr_zero(taken));
      if (is_near) {
        left &= ~uint32_t{0} << link;
        const uint64_t free = free_soon(row, link, skewed, cycles, std::min(end, r.far));
        if (free != kNever) {
          skewed = free;
          continue;
        }
      }
      skewed = take_one(row, link, skewed, cycles, now);
      piece(link, 1, skewed - skew(link));
      left = link + 1 == kLinks ? 0 : left & ~uint32_t{0} << (link + 1);
      if (left == 0) break;
    }
    return skewed - skew(first + count - 1);
  }

  uint32_t count() const { return static_cast<uint32_t>(rows_.size()); }
  // Cycles for which a row's links were taken, since the beginning.
  std::array<uint64_t, kLinks> used(uint32_t row) const;
  // Hands over what is taken from `now` on, as take(row, link, begin, end) in cycles; nothing is
  // used afterwards.
  template <class Take>
  void take_out(uint64_t now, Take take) {
    for (uint32_t row = 0; row < rows_.size(); ++row)
      for (uint32_t link = 0; link < kLinks; ++link) take_out_of(row, link, now, take);
  }

 private:
  static constexpr uint32_t kBlock = 16;  // words that are cleared together
  static constexpr uint64_t kNever = ~uint64_t{0};
  // Of one row, in skewed time: what lies behind the map.
  struct Far {
    std::array<std::unique_ptr<SpanCalendar>, kLinks> lists;
    std::array<uint64_t, kLinks> begin;  // nothing in the list is earlier
    Far() { begin.fill(kNever); }
  };
  struct Row {
    std::array<int64_t, kLinks + 1> used{};  // of each link, beyond that of the one before
    uint64_t far = kNever;                   // nothing in the lists is earlier
    std::unique_ptr<Far> lists;
  };

  // No message of so many cycles finds a place that begins from `from` on and before `to`: where
  // many wait, each would look through all that is taken.
  struct Full {
    uint64_t from = 0, to = 0;
    uint32_t cycles = 0;
  };

  size_t tag_of(uint32_t row, uint64_t block) const {
    return size_t{row} * (block_mask_ + 1) + (block & block_mask_);
  }
  uint64_t skew(uint32_t link) const { return uint64_t{kLinks - 1 - link} * hop_; }
  uint64_t end_of_map(uint64_t now) const { return (now / kBlock) * kBlock + mask_ + 1; }
  // The row's words, of which those of that time are valid from now on.
  uint32_t* words_of(uint32_t row, uint64_t from, uint32_t cycles) {
    for (uint64_t block = from / kBlock; block <= (from + cycles - 1) / kBlock; ++block) {
      uint32_t& tag = tags_[tag_of(row, block)];
      if (tag != static_cast<uint32_t>(block)) clear(row, block);
    }
    return words_.data() + size_t{row} * (mask_ + 1);
  }
  void clear(uint32_t row, uint64_t block);
  // Where the link, which is taken in what would begin at `at`, is free; kNever: not soon.
  uint64_t free_soon(uint32_t row, uint32_t link, uint64_t at, uint32_t cycles, uint64_t end) {
    constexpr uint32_t kSoon = 4;
    for (uint32_t tries = 0; tries < kSoon; ++tries) {
      const uint32_t* const words = words_of(row, at, cycles);
      uint32_t i = cycles;
      while (i != 0 && (words[(at + i - 1) & mask_] >> link & 1) == 0) --i;
      if (i == 0) return at;
      at += i;
      if (at + cycles > end) return kNever;
    }
    return kNever;
  }
  // A bit per cycle of a block: whether the link is taken.
  uint32_t column(uint32_t row, uint32_t link, uint64_t block) const;
  void mark(uint32_t row, uint32_t link, uint64_t begin, uint64_t end);
  uint64_t take_one(uint32_t row, uint32_t link, uint64_t at, uint32_t cycles, uint64_t now);
  uint64_t take_behind(uint32_t row, uint32_t link, uint64_t at, uint32_t cycles, uint64_t now);
  uint64_t take_from_list(uint32_t row, uint32_t link, uint64_t at, uint64_t cycles, uint64_t now);
  void bring_near(uint32_t row, uint64_t end, uint64_t now);

  template <class Take>
  void take_out_of(uint32_t row, uint32_t link, uint64_t now, Take take) {
    const uint64_t end = end_of_map(now);
    const auto hand_over = [&](uint64_t begin, uint64_t to) {
      begin = std::max(begin, now + skew(link));
      if (begin < to) take(row, link, begin - skew(link), to - skew(link));
    };
    for (uint64_t at = now; at < end; ++at)
      if (column(row, link, at / kBlock) >> (at % kBlock) & 1) hand_over(at, at + 1);
    Row& r = rows_[row];
    if (r.lists && r.lists->lists[link]) r.lists->lists[link]->take_out(now, kNever, hand_over);
  }

  uint32_t hop_, mask_, block_mask_;
  std::vector<Row> rows_;
  // [row][cycle of skewed time, modulo their number], [row][block].
  std::vector<uint32_t, HugeAllocator<uint32_t>> words_, tags_;
  std::vector<std::array<Full, 2>, HugeAllocator<std::array<Full, 2>>> full_;  // [row][link]
};

}  // namespace gpusim::host::chip
