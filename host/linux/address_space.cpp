#include "host/linux/address_space.h"

#include <algorithm>

#include "host/memory_plan.h"

namespace gpusim::host {

std::optional<AddressSpace::BreakChange> AddressSpace::set_break(uint64_t to) {
  if (to < first_break_ || to > limit_) return std::nullopt;
  const uint64_t end = page_up(to);
  BreakChange change;
  if (end > mapped_break_) {
    if (!is_free(mapped_break_, end - mapped_break_)) return std::nullopt;
    change.map = {mapped_break_, end};
    insert(mapped_break_, end);
  } else if (end < mapped_break_) {
    change.unmap = remove(end, mapped_break_ - end);
  }
  break_ = to;
  mapped_break_ = end;
  return change;
}

// Neighbours become one: the heap grows in many small steps.
void AddressSpace::insert(uint64_t begin, uint64_t end) {
  auto next = mapped_.lower_bound(begin);
  if (next != mapped_.end() && next->first == end) {
    end = next->second;
    next = mapped_.erase(next);
  }
  if (next != mapped_.begin() && std::prev(next)->second == begin)
    std::prev(next)->second = end;
  else
    mapped_.emplace_hint(next, begin, end);
}

bool AddressSpace::is_free(uint64_t address, uint64_t size_bytes) const {
  if (address < start_ || address > limit_ || size_bytes > limit_ - address) return false;
  const auto next = mapped_.lower_bound(address + size_bytes);
  return next == mapped_.begin() || std::prev(next)->second <= address;
}

std::optional<uint64_t> AddressSpace::place(uint64_t size_bytes, uint64_t hint) {
  if (size_bytes == 0 || size_bytes > limit_) return std::nullopt;
  // The heap should be able to grow; a hint may be anywhere above it.
  const bool is_near = hint >= start_ && hint < first_break_ && size_bytes <= first_break_ - hint;
  if ((hint >= mapped_break_ || is_near) && hint != 0 && is_free(hint, size_bytes)) {
    insert(hint, hint + size_bytes);
    return hint;
  }
  // The highest gap that is large enough.
  uint64_t top = limit_;
  for (auto it = mapped_.rbegin();; ++it) {
    const bool is_last = it == mapped_.rend() || it->second <= mapped_break_;
    const uint64_t floor = is_last ? mapped_break_ : it->second;
    if (top >= floor && top - floor >= size_bytes) {
      insert(top - size_bytes, top);
      return top - size_bytes;
    }
    if (is_last) return std::nullopt;
    top = it->first;
  }
}

std::optional<uint64_t> AddressSpace::place_between(uint64_t size_bytes, uint64_t first,
                                                    uint64_t end) {
  end = std::min(end, limit_);
  uint64_t at = std::max(first, start_);
  auto it = mapped_.upper_bound(at);
  if (it != mapped_.begin()) --it;
  for (; it != mapped_.end() && it->first < at + size_bytes; ++it) at = std::max(at, it->second);
  if (size_bytes == 0 || at > end || size_bytes > end - at) return std::nullopt;
  insert(at, at + size_bytes);
  return at;
}

bool AddressSpace::can_place_at(uint64_t address, uint64_t size_bytes) const {
  return size_bytes != 0 && address >= start_ && address <= limit_ &&
         size_bytes <= limit_ - address;
}

std::vector<AddressRange> AddressSpace::place_at(uint64_t address, uint64_t size_bytes) {
  std::vector<AddressRange> replaced = remove(address, size_bytes);
  insert(address, address + size_bytes);
  return replaced;
}

std::vector<AddressRange> AddressSpace::remove(uint64_t address, uint64_t size_bytes) {
  std::vector<AddressRange> removed;
  const uint64_t end = address + size_bytes;
  auto it = mapped_.lower_bound(address);
  if (it != mapped_.begin() && std::prev(it)->second > address) --it;
  while (it != mapped_.end() && it->first < end) {
    const AddressRange old{it->first, it->second};
    it = mapped_.erase(it);
    if (old.begin < address) mapped_[old.begin] = address;
    if (old.end > end) mapped_[end] = old.end;
    removed.push_back({std::max(old.begin, address), std::min(old.end, end)});
  }
  return removed;
}

bool AddressSpace::is_mapped(uint64_t address, uint64_t size_bytes) const {
  const uint64_t end = address + size_bytes;
  auto it = mapped_.upper_bound(address);
  if (it == mapped_.begin()) return false;
  for (--it; it != mapped_.end() && it->first <= address; ++it) {
    address = std::max(address, it->second);
    if (address >= end) return true;
  }
  return false;
}

uint64_t AddressSpace::mapped_bytes() const {
  uint64_t sum = 0;
  for (const auto& [begin, end] : mapped_) sum += end - begin;
  return sum;
}

}  // namespace gpusim::host
