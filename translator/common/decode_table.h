// Look-up from an instruction word to its row: the word's index bits choose a bucket, a bucket
// lists the rows that can match, most specific first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "translator/common/bit_pattern.h"

namespace gpusim {

struct IndexSlice {
  unsigned lsb;
  unsigned width;
};

/// Row needs: `BitPattern<Word> pattern` and `bool (*allowed)(Word)`, null when every word that
/// matches the pattern is allocated. The most specific row that matches owns a word: where its
/// constraint refuses, the word is unallocated, and no wider row is tried.
template <typename Row, typename Word, size_t kSlices>
class DecodeTable {
 public:
  DecodeTable(std::span<const Row> rows, const std::array<IndexSlice, kSlices>& slices)
      : rows_(rows), slices_(slices) {
    std::vector<uint16_t> order(rows.size());
    std::iota(order.begin(), order.end(), uint16_t{0});
    std::stable_sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
      return rows[a].pattern.fixed_bits() > rows[b].pattern.fixed_bits();
    });

    unsigned index_bits = 0;
    for (const IndexSlice& s : slices) index_bits += s.width;
    const uint32_t all = (1u << index_bits) - 1;
    // Calls f(bucket, row) for every row that may match, in order.
    const auto for_each_candidate = [&](auto f) {
      for (const uint16_t r : order) {
        const uint32_t fixed = index_of(rows[r].pattern.mask);
        const uint32_t value = index_of(rows[r].pattern.value);
        const uint32_t free = all & ~fixed;
        // Every subset of the free index bits, once.
        uint32_t subset = 0;
        do {
          f(value | subset, r);
          subset = (subset - free) & free;
        } while (subset != 0);
      }
    };
    start_.resize(size_t{all} + 2);
    for_each_candidate([&](uint32_t bucket, uint16_t) { ++start_[bucket + 1]; });
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    candidates_.resize(start_.back());
    std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
    for_each_candidate([&](uint32_t bucket, uint16_t r) { candidates_[next[bucket]++] = r; });
  }

  /// The row that owns the word, or null: unallocated.
  const Row* find(Word word) const {
    const uint32_t bucket = index_of(word);
    for (uint32_t i = start_[bucket]; i != start_[bucket + 1]; ++i) {
      const Row& row = rows_[candidates_[i]];
      if (!row.pattern.matches(word)) continue;
      return row.allowed == nullptr || row.allowed(word) ? &row : nullptr;
    }
    return nullptr;
  }

 private:
  uint32_t index_of(Word word) const {
    uint32_t index = 0;
    for (const IndexSlice& s : slices_) {
      index = (index << s.width) |
              BitField{0, static_cast<uint8_t>(s.lsb), static_cast<uint8_t>(s.width)}.of(word);
    }
    return index;
  }

  std::span<const Row> rows_;
  std::array<IndexSlice, kSlices> slices_;
  std::vector<uint32_t> start_;
  std::vector<uint16_t> candidates_;
};

/// Two rows that share words without one lying strictly inside the other leave it open which of
/// them is meant. True when no such pair exists.
template <typename Row, size_t kCount>
constexpr bool rows_are_unambiguous(const std::array<Row, kCount>& rows) {
  // Plain pointers, and the common case spelt out: a compiler limits what it evaluates.
  const Row* const end = rows.data() + kCount;
  for (const Row* i = rows.data(); i != end; ++i) {
    const auto& a = i->pattern;
    const auto mask = a.mask;
    const auto value = a.value;
    for (const Row* j = i + 1; j != end; ++j) {
      if (((value ^ j->pattern.value) & mask & j->pattern.mask) != 0) continue;
      const auto& b = j->pattern;
      if (a.overlaps(b) && !a.strictly_inside(b) && !b.strictly_inside(a)) return false;
    }
  }
  return true;
}

}  // namespace gpusim
