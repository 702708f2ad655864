#include "host/uninitialised/heap.h"

#include <iterator>
#include <utility>

namespace gpusim::host::uninitialised {

std::optional<HeapCall> heap_call_of(std::string_view function) {
  struct Name {
    std::string_view name;
    HeapCall call;
  };
  static constexpr Name kNames[] = {
      {"malloc", HeapCall::kAllocate},
      {"valloc", HeapCall::kAllocate},
      {"pvalloc", HeapCall::kAllocate},
      {"calloc", HeapCall::kAllocateZero},
      {"realloc", HeapCall::kReallocate},
      {"reallocarray", HeapCall::kReallocateArray},
      {"memalign", HeapCall::kAllocateAligned},
      {"aligned_alloc", HeapCall::kAllocateAligned},
      {"posix_memalign", HeapCall::kAllocateTo},
      {"free", HeapCall::kFree},
      {"cfree", HeapCall::kFree},
  };
  for (const Name& n : kNames)
    if (n.name == function) return n.call;
  // operator new, new[], delete and delete[], whatever else they are given.
  if (function.starts_with("_Znwm") || function.starts_with("_Znam")) return HeapCall::kAllocate;
  if (function.starts_with("_ZdlPv") || function.starts_with("_ZdaPv")) return HeapCall::kFree;
  return std::nullopt;
}

void Heap::add(uint32_t space, const HeapBlock& block) {
  auto next = blocks_.lower_bound({space, block.begin});
  if (next != blocks_.begin()) {
    const auto before = std::prev(next);
    const HeapBlock& b = before->second;
    if (before->first.first == space && b.begin + b.size_bytes > block.begin) blocks_.erase(before);
  }
  while (next != blocks_.end() && next->first.first == space &&
         next->first.second < block.begin + block.size_bytes)
    next = blocks_.erase(next);
  blocks_[{space, block.begin}] = block;
}

HeapBlock* Heap::find(uint32_t space, uint64_t begin) {
  const auto place = blocks_.find({space, begin});
  return place != blocks_.end() && !place->second.is_freed ? &place->second : nullptr;
}

const HeapBlock* Heap::at(uint32_t space, uint64_t address) const {
  const auto next = blocks_.upper_bound({space, address});
  if (next == blocks_.begin()) return nullptr;
  const auto& [key, block] = *std::prev(next);
  const bool is_inside = key.first == space && address - block.begin < block.size_bytes;
  return is_inside ? &block : nullptr;
}

}  // namespace gpusim::host::uninitialised
