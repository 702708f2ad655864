// Memory on huge pages, where the system has them: a model of thousands of cores accesses megabytes
// all over, and nearly each access to a small page would miss the host's TLB.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "device_sim/core/guest_memory.h"

namespace gpusim::host::chip {

// Gives pieces, zeroed, that stay until the pool goes.
class HugePool {
 public:
  void* take(size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > left_) {
      left_ = std::max<size_t>(bytes, kChunk);
      chunks_.emplace_back(left_, "the chip's model", Pages::kHuge);
      at_ = chunks_.back().data();
    }
    left_ -= bytes;
    at_ += bytes;
    return at_ - bytes;
  }

 private:
  static constexpr size_t kAlignment = 128, kChunk = size_t{4} << 20;
  std::vector<LazyMemory> chunks_;
  uint8_t* at_ = nullptr;
  size_t left_ = 0;
};

// For free(); null: there is none.
void* huge_pages(size_t bytes, size_t alignment);

// For containers: of what is large.
template <class T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <class U>
  explicit HugeAllocator(const HugeAllocator<U>&) {}
  bool operator==(const HugeAllocator&) const { return true; }

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    void* const p = huge_pages(std::max(bytes, size_t{1}), alignof(T));
    if (!p) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) { std::free(p); }
};

}  // namespace gpusim::host::chip
