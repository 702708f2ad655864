#include "host/ptx/heap.h"

#include <algorithm>
#include <iterator>

namespace gpusim::ptx {
namespace {
constexpr uint64_t kAlign = 16;
}

DeviceHeap::DeviceHeap(uint64_t size_bytes) : pages_(size_bytes) {
  free_[pages_.address()] = pages_.size_bytes();
}

// The first block that is large enough.
uint64_t DeviceHeap::allocate(uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > pages_.size_bytes()) return 0;
  const uint64_t size = (size_bytes + kAlign - 1) & ~(kAlign - 1);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& block) { return block.second >= size; });
  if (found == free_.end()) return 0;
  const auto [address, room] = *found;
  free_.erase(found);
  if (room > size) free_[address + size] = room - size;
  used_[address] = size;
  return address;
}

bool DeviceHeap::free(uint64_t address) {
  if (address == 0) return true;
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(address);
  if (found == used_.end()) return false;
  uint64_t begin = found->first, size = found->second;
  used_.erase(found);
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    free_.erase(next);
  }
  free_[begin] = size;
  return true;
}

}  // namespace gpusim::ptx
