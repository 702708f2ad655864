#include "device_sim/native/page_table.h"

#include <algorithm>

namespace gpusim::native {

PageTable::PageTable(const MemoryView& view, bool plain_windows)
    : linear_{view.linear_pages, view.linear_base >> kPageShift, view.linear_size >> kPageShift,
              0} {
  if (plain_windows)
    windows_ = {view.window_pages, view.window_base >> kPageShift, view.windows_size >> kPageShift,
                4};
  constexpr uint64_t kMost = uint64_t{1} << 31;  // an immediate holds their number
  if (windows_.first + windows_.count >= kMost) windows_ = {};
  if (linear_.first + linear_.count >= kMost) linear_ = {};
  pages_ = std::max(linear_.first + linear_.count, windows_.first + windows_.count);
  rights_ = LazyMemory(std::max<uint64_t>(pages_, 1), "page rights");
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
    const uint8_t flags = zone.flags[page - zone.first];
    const bool reads = flags & kRead, writes = reads && (flags & kWrite);
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
