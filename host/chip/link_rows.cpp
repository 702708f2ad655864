#include "host/chip/link_rows.h"

#include <algorithm>

namespace gpusim::host::chip {

LinkRows::LinkRows(uint32_t rows, uint32_t hop_cycles)
    // So far ahead of now hardly a message is, also where many wait for one tile.
    : hop_(hop_cycles),
      mask_(std::bit_ceil(3 * 1024 + (kLinks - 1) * hop_cycles) - 1),
      block_mask_((mask_ + 1) / kBlock - 1),
      rows_(rows),
      words_(size_t{rows} * (mask_ + 1)),
      tags_(size_t{rows} * (block_mask_ + 1)),
      full_(size_t{rows} * kLinks) {}

std::array<uint64_t, LinkRows::kLinks> LinkRows::used(uint32_t row) const {
  std::array<uint64_t, kLinks> all{};
  int64_t sum = 0;
  for (uint32_t link = 0; link < kLinks; ++link) {
    sum += rows_[row].used[link];
    all[link] = static_cast<uint64_t>(sum);
  }
  return all;
}

void LinkRows::clear(uint32_t row, uint64_t block) {
  const size_t tag = tag_of(row, block);
  std::fill_n(words_.begin() + static_cast<std::ptrdiff_t>(tag * kBlock), kBlock, 0);
  tags_[tag] = static_cast<uint32_t>(block);
}

uint32_t LinkRows::column(uint32_t row, uint32_t link, uint64_t block) const {
  static constexpr auto kBits = [] {
    std::array<uint32_t, kBlock> bits{};
    for (uint32_t i = 0; i < kBlock; ++i) bits[i] = uint32_t{1} << i;
    return bits;
  }();
  const size_t tag = tag_of(row, block);
  if (tags_[tag] != static_cast<uint32_t>(block)) return 0;
  const uint32_t* const words = words_.data() + tag * kBlock;
  const uint32_t bit = uint32_t{1} << link;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < kBlock; ++i)
    taken |= (words[i] & bit) != 0 ? kBits[i] : 0;  // by vectors
  return taken;
}

void LinkRows::mark(uint32_t row, uint32_t link, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  uint32_t* const words = words_of(row, begin, static_cast<uint32_t>(end - begin));
  for (uint64_t at = begin; at < end; ++at) words[at & mask_] |= uint32_t{1} << link;
}

uint64_t LinkRows::take_from_list(uint32_t row, uint32_t link, uint64_t at, uint64_t cycles,
                                  uint64_t now) {
  Row& r = rows_[row];
  if (!r.lists) r.lists = std::make_unique<Far>();
  auto& list = r.lists->lists[link];
  if (!list) list = std::make_unique<SpanCalendar>();
  const uint64_t begin = list->take(at, cycles, now);
  r.lists->begin[link] = std::min(r.lists->begin[link], begin);
  r.far = std::min(r.far, begin);
  return begin;
}

void LinkRows::bring_near(uint32_t row, uint64_t end, uint64_t now) {
  Row& r = rows_[row];
  r.far = kNever;
  for (uint32_t link = 0; link < kLinks; ++link) {
    uint64_t& begin = r.lists->begin[link];
    if (begin < end)
      begin = r.lists->lists[link]->take_out(
          now, end, [&](uint64_t from, uint64_t to) { mark(row, link, std::max(from, now), to); });
    r.far = std::min(r.far, begin);
  }
}

// The first place that is free for so long, of one link. All in skewed time.
uint64_t LinkRows::take_one(uint32_t row, uint32_t link, uint64_t at, uint32_t cycles,
                            uint64_t now) {
  Full& full = full_[size_t{row} * kLinks + link][cycles == 1 ? 0 : 1];
  const bool is_known = full.from <= at && at <= full.to && full.cycles <= cycles;
  const uint64_t begin = take_behind(row, link, is_known ? full.to : at, cycles, now);
  if (is_known && full.cycles == cycles)
    full.to = begin + cycles;
  else if (!is_known)
    full = {at, begin + cycles, cycles};
  return begin;
}

uint64_t LinkRows::take_behind(uint32_t row, uint32_t link, uint64_t at, uint32_t cycles,
                               uint64_t now) {
  const uint64_t end = end_of_map(now);
  if (at >= end) return take_from_list(row, link, at, cycles, now);
  if (rows_[row].far < end) bring_near(row, end, now);
  uint64_t begin = at;  // free from here on, up to what was looked at
  for (uint64_t block = std::max(at, now) / kBlock; block < end / kBlock; ++block) {
    uint32_t taken = column(row, link, block);
    const uint64_t first = block * kBlock, from = std::max(at, now);
    if (first < from) taken = taken >> (from - first) << (from - first);
    for (uint32_t bit = 0; bit < kBlock;) {
      const auto next = std::min<uint32_t>(
          kBlock, bit + static_cast<uint32_t>(std::countr_zero(taken >> bit | 1u << kBlock)));
      if (first + next >= begin + cycles) {
        mark(row, link, std::max(begin, now), begin + cycles);
        return begin;
      }
      if (next == kBlock) break;
      bit = next + static_cast<uint32_t>(std::countr_one(taken >> next));
      begin = first + bit;
    }
  }
  // Behind what is taken last in the map, and on in the list; or all of it there.
  const uint64_t list_begin = rows_[row].lists ? rows_[row].lists->begin[link] : kNever;
  if (begin >= end || begin + cycles > list_begin)
    return take_from_list(row, link, end, cycles, now);
  mark(row, link, std::max(begin, now), end);
  take_from_list(row, link, end, begin + cycles - end, now);
  return begin;
}

}  // namespace gpusim::host::chip
