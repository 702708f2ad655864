#include "host/linux/address_space.h"

#include <algorithm>

#include "host/memory_plan.h"

namespace gpusim::host {

std::optional<AddressSpace::BreakChange> AddressSpace::set_break(uint64_t to) {
  const uint64_t ceiling = mappings_.empty() ? limit_ : mappings_.begin()->first;
  if (to < start_ || to > ceiling) return std::nullopt;
  const uint64_t end = page_up(to);
  BreakChange change;
  if (end > mapped_break_) change.map = {mapped_break_, end};
  if (end < mapped_break_) change.unmap = {end, mapped_break_};
  break_ = to;
  mapped_break_ = end;
  return change;
}

bool AddressSpace::is_free(uint64_t begin, uint64_t end) const {
  if (begin < mapped_break_ || end > limit_ || begin > end) return false;
  const auto next = mappings_.lower_bound(end);
  return next == mappings_.begin() || std::prev(next)->second <= begin;
}

std::optional<uint64_t> AddressSpace::place(uint64_t size_bytes, uint64_t hint) {
  if (size_bytes == 0 || size_bytes > limit_) return std::nullopt;
  if (hint != 0 && hint <= limit_ && size_bytes <= limit_ - hint &&
      is_free(hint, hint + size_bytes)) {
    mappings_[hint] = hint + size_bytes;
    return hint;
  }
  // The highest gap that is large enough.
  uint64_t top = limit_;
  for (auto it = mappings_.rbegin();; ++it) {
    const uint64_t floor = it == mappings_.rend() ? mapped_break_ : it->second;
    if (top >= floor && top - floor >= size_bytes) {
      mappings_[top - size_bytes] = top;
      return top - size_bytes;
    }
    if (it == mappings_.rend()) return std::nullopt;
    top = it->first;
  }
}

bool AddressSpace::can_place_at(uint64_t address, uint64_t size_bytes) const {
  return size_bytes != 0 && address >= mapped_break_ && address <= limit_ &&
         size_bytes <= limit_ - address;
}

std::vector<AddressRange> AddressSpace::place_at(uint64_t address, uint64_t size_bytes) {
  std::vector<AddressRange> replaced = remove(address, size_bytes);
  mappings_[address] = address + size_bytes;
  return replaced;
}

std::vector<AddressRange> AddressSpace::remove(uint64_t address, uint64_t size_bytes) {
  std::vector<AddressRange> removed;
  const uint64_t end = address + size_bytes;
  auto it = mappings_.lower_bound(address);
  if (it != mappings_.begin() && std::prev(it)->second > address) --it;
  while (it != mappings_.end() && it->first < end) {
    const AddressRange old{it->first, it->second};
    it = mappings_.erase(it);
    if (old.begin < address) mappings_[old.begin] = address;
    if (old.end > end) mappings_[end] = old.end;
    removed.push_back({std::max(old.begin, address), std::min(old.end, end)});
  }
  return removed;
}

bool AddressSpace::is_mapped(uint64_t address, uint64_t size_bytes) const {
  const uint64_t end = address + size_bytes;
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return false;
  for (--it; it != mappings_.end() && it->first <= address; ++it) {
    address = std::max(address, it->second);
    if (address >= end) return true;
  }
  return false;
}

}  // namespace gpusim::host
