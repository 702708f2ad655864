// Blocks that a program allocates, and the functions that do it, found by their names.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "host/run/unwinder.h"

namespace gpusim::host::uninitialised {

enum class HeapCall : uint8_t {
  kAllocate,         // size
  kAllocateZero,     // count, size
  kReallocate,       // block, size
  kReallocateArray,  // block, count, size
  kAllocateAligned,  // alignment, size
  kAllocateTo,       // where to store the address, alignment, size
  kFree,             // block
};
// "malloc", "_Znwm" ...; nothing of other functions.
std::optional<HeapCall> heap_call_of(std::string_view function);

struct HeapBlock {
  uint64_t begin = 0, size_bytes = 0;
  uint32_t site = 0;  // of its allocation: Heap::site()
  uint32_t core = 0;  // that allocated it
  bool is_freed = false;
};

class Heap {
 public:
  // Takes the place of freed ones.
  void add(uint32_t space, const HeapBlock& block);
  // The one that begins there and is not freed, or null. Valid until the next add().
  HeapBlock* find(uint32_t space, uint64_t begin);
  // The one that has the byte, freed ones among them, or null.
  const HeapBlock* at(uint32_t space, uint64_t address) const;

  // The number of a place that allocates; `stack` is called where it is new.
  template <class F>
  uint32_t site_at(uint64_t return_pc, F stack) {
    const auto [place, is_new] =
        number_of_.try_emplace(return_pc, static_cast<uint32_t>(sites_.size()));
    if (is_new) sites_.push_back(stack());
    return place->second;
  }
  const CallStack& site(uint32_t number) const { return sites_[number]; }

 private:
  std::map<std::pair<uint32_t, uint64_t>, HeapBlock> blocks_;  // by space and address
  std::map<uint64_t, uint32_t> number_of_;
  std::vector<CallStack> sites_;
};

}  // namespace gpusim::host::uninitialised
