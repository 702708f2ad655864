// What is known of lines: a table that is one place in memory per look, and no more.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/chip/huge_pages.h"

namespace gpusim::host::chip {

// From numbers (lines, pages of lines; not ~0) to values. Insertion moves the values.
template <class Value>
class LineMap {
 public:
  // Null: it is not there.
  Value* find(uint64_t key) {
    if (count_ == 0) return nullptr;
    for (size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kNone) return nullptr;
    }
  }
  void prefetch(uint64_t key) const {
    if (count_ != 0) __builtin_prefetch(&slots_[home(key)], 1);
  }
  Value& operator[](uint64_t key) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    for (size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].value;
      if (slots_[i].key != kNone) continue;
      slots_[i].key = key;
      ++count_;
      return slots_[i].value;
    }
  }
  // One that find() or operator[] gave.
  void erase(Value* value) {
    size_t hole = static_cast<size_t>(
        (reinterpret_cast<std::byte*>(value) - reinterpret_cast<std::byte*>(&slots_[0].value)) /
        static_cast<std::ptrdiff_t>(sizeof(Slot)));
    // Those behind it that would not be found any more come nearer.
    for (size_t i = (hole + 1) & mask_; slots_[i].key != kNone; i = (i + 1) & mask_) {
      if (((i - home(slots_[i].key)) & mask_) < ((i - hole) & mask_)) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole] = Slot{};
    --count_;
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  struct Slot {
    uint64_t key = kNone;
    Value value{};
  };
  using Slots = std::vector<Slot, HugeAllocator<Slot>>;
  size_t home(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> shift_);
  }
  void grow() {
    constexpr size_t kLeast = 64;
    constexpr uint32_t kBitsOfLeast = 6;
    Slots old = std::exchange(slots_, Slots(std::max<size_t>(kLeast, 2 * slots_.size())));
    mask_ = slots_.size() - 1;
    shift_ = old.empty() ? 64 - kBitsOfLeast : shift_ - 1;
    for (Slot& slot : old) {
      if (slot.key == kNone) continue;
      size_t i = home(slot.key);
      while (slots_[i].key != kNone) i = (i + 1) & mask_;
      slots_[i] = std::move(slot);
    }
  }

  Slots slots_;
  size_t count_ = 0, mask_ = 0;
  uint32_t shift_ = 0;
};

}  // namespace gpusim::host::chip
