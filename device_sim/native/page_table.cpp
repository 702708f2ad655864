#include "device_sim/native/page_table.h"

#include <algorithm>

namespace gpusim::native {

PageTable::PageTable(const MemoryView& view, bool plain_windows)
    : view_(view), linear_{view.linear_base >> kPageShift, view.linear_size >> kPageShift} {
  if (plain_windows)
    windows_ = {.first = view.window_base >> kPageShift,
                .count = view.windows_size >> kPageShift,
                .shift = 4,
                .is_windows = true};
  constexpr uint64_t kMost = uint64_t{1} << 31;  // an immediate holds their number
  if (windows_.first + windows_.count >= kMost) windows_ = {};
  if (linear_.first + linear_.count >= kMost) linear_ = {};
  pages_ = std::max(linear_.first + linear_.count, windows_.first + windows_.count);
  rights_ = LazyMemory(std::max<uint64_t>(pages_, 1), "page rights");
}

// SegmentFlags.
uint8_t PageTable::flags(const Zone& zone, uint64_t page) const {
  const uint64_t in_zone = page - zone.first;
  if (!zone.is_windows) return view_.linear_pages[in_zone];
  const uint64_t offset = in_zone << kPageShift, window = uint64_t{1} << view_.window_shift;
  return view_.window_pages[view_.window_page_index(
      static_cast<uint32_t>(offset >> view_.window_shift), offset & (window - 1))];
}

void PageTable::update(uint64_t address, uint64_t size_bytes) {
  if (size_bytes == 0) return;
  const uint64_t first = address >> kPageShift;
  const uint64_t last = (address + size_bytes - 1) >> kPageShift;
  for (const Zone& zone : {linear_, windows_}) update(zone, first, last);
}

void PageTable::update(const Zone& zone, uint64_t first, uint64_t last) {
  if (zone.count == 0 || last < zone.first || first >= zone.first + zone.count) return;
  const auto bits = [&](uint64_t page) {
    const uint8_t rights = flags(zone, page);
    const bool reads = rights & kRead, writes = reads && (rights & kWrite);
    return static_cast<uint8_t>((reads ? PageRights::kLinearRead : 0) |
                                (writes ? PageRights::kLinearWrite : 0));
  };
  const uint64_t end = zone.first + zone.count;
  // What the page before may do depends on the first.
  for (uint64_t page = std::max(first, zone.first + 1) - 1; page <= std::min(last, end - 1);
       ++page) {
    const uint8_t alone = bits(page);
    const auto both = static_cast<uint8_t>(page + 1 < end ? alone & bits(page + 1) : 0);
    const auto mine = static_cast<uint8_t>((both | alone << PageRights::kAlone) << zone.shift);
    const auto others = static_cast<uint8_t>(0xf0 >> zone.shift);
    uint8_t& entry = rights_.data()[page];
    const auto now = static_cast<uint8_t>((entry & others) | mine);
    if (entry != now) entry = now;  // pages that are never used stay untouched
  }
}

}  // namespace gpusim::native
