// How long the turns of one group are whose cores step through memory together
// (docs/adr/0057-turns-of-far-steps.md).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "device_sim/simd/group.h"

namespace gpusim::simd {

// The first value of each row in which neighbouring lanes have neighbouring elements: places in
// arrays, or numbers of elements. By values alone, not by how rows hold them.
class Neighbours {
 public:
  explicit Neighbours(const Group& g) : slots_(g.width > 1 ? g.slot_count : 0) {
    for (uint32_t s = 0; s < slots_; ++s) {
      const auto slot = static_cast<Slot>(s);
      first_[s] = g.get_lane(slot, 0);
      const uint64_t size = g.get_lane(slot, 1) - first_[s];
      size_[s] = size <= kMostBytes ? static_cast<uint8_t>(size) : 0;
    }
  }
  // Whether one of them has moved by so much since.
  bool are_farther(const Neighbours& before, uint64_t least) const {
    for (uint32_t s = 0; s < slots_; ++s) {
      const uint64_t moved = first_[s] - before.first_[s];
      if (size_[s] != 0 && size_[s] == before.size_[s] && std::min(moved, 0 - moved) >= least)
        return true;
    }
    return false;
  }

 private:
  static constexpr uint64_t kMostBytes = 8;
  uint32_t slots_;
  std::array<uint64_t, 256> first_;
  std::array<uint8_t, 256> size_;
};

// Usually groups have long turns, so that a context that comes into the caches is used for long.
// Where each pass of a loop takes a group far away, over what its neighbours work on, the lines
// next to its own have left the caches when their turns come, and a processor that looks ahead
// within a page finds nothing to do: then turns are short, and groups follow each other closely.
// Such a group used up its turns. One that waits, at a barrier say, ends them itself.
class TurnBySteps {
 public:
  // Of fewer, lines stay in the caches until the neighbours' turns, and those turns only begin more
  // often.
  static constexpr size_t kGroups = 128;

  uint64_t length(uint64_t usual) const { return is_short_ ? std::min(kShort, usual) : usual; }
  // Whether the group is to be looked at, before and after its next turn. That takes time: not in
  // every short turn.
  bool is_due() const { return was_full_ && (!is_short_ || short_turns_ == 0); }

  // After a turn. `is_far`: of one in which is_due() said so.
  void note(bool is_full, bool looked, bool is_far) {
    if (looked || !is_full) is_short_ = is_full && is_far;
    was_full_ = is_full;
    short_turns_ = is_short_ ? (short_turns_ + 1) % kShortTurns : 0;
  }
  static bool is_far(const Neighbours& before, const Neighbours& after, uint64_t instructions) {
    return after.are_farther(before, kFar * instructions);
  }

  template <class Archive>
  void describe(Archive& a) {
    a(short_turns_);
    a(is_short_);
    a(was_full_);
  }
  bool is_valid() const { return short_turns_ < kShortTurns; }

 private:
  static constexpr uint64_t kShort = 512;
  static constexpr uint32_t kShortTurns = 16;  // to the next look
  // Bytes, or elements, per instruction: more than a page in a loop of a few instructions.
  static constexpr uint64_t kFar = 256;

  uint32_t short_turns_ = 0;
  bool is_short_ = false, was_full_ = false;
};

}  // namespace gpusim::simd
