// How long the turns of many cores are that run alone (docs/adr/0020-turns.md).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpusim::simd {

// Long ones, so that a core's data stay in the caches, as long as cores have as much to do as each
// other. Where one of them finds the work of all the others, because it takes the next piece again
// before they had a turn, turns are short, and grow again once that is over. To take pieces, cores
// synchronise: one that only works while the others wait for it does not do so more than they.
class TurnOfMany {
 public:
  // Of what cores did in a round: all of them together, and the one with most instructions.
  struct Share {
    uint64_t all, busiest;
    // Whether the busiest of so many has more than `kUneven` times the mean.
    bool is_uneven(size_t cores) const { return busiest * cores > kUneven * all; }
  };

  // In instructions.
  uint64_t length() const { return length_; }
  // After a look at so many cores, of which only some had a turn (at least one): the fewer, the
  // longer. To pass over the others for each of many short turns would take longer than the turns.
  uint64_t length(size_t cores, size_t ran) const {
    return std::min(kMost, length_ * std::max<uint64_t>(1, cores / ran));
  }

  // After so many cores ran, each by turns. `synchronising`: those of the instructions.
  void note(size_t cores, Share instructions, Share synchronising) {
    if (cores >= kMany && instructions.busiest >= kLeast && instructions.is_uneven(cores) &&
        synchronising.is_uneven(cores)) {
      length_ = kLeast;
      even_ = 0;
    } else if (length_ < kMost && ++even_ == kUntilLonger) {
      length_ *= 2;
      even_ = 0;
    }
  }

  template <class Archive>
  void describe(Archive& a) {
    a(length_);
    a(even_);
  }
  bool is_valid() const { return length_ >= kLeast && length_ <= kMost && even_ < kUntilLonger; }

 private:
  static constexpr uint64_t kMost = 1 << 17, kLeast = 256;
  // Fewer cores are not worth it: a piece of work that one of them takes is a part of the whole.
  static constexpr size_t kMany = 64;
  static constexpr uint64_t kUneven = 4;       // times the mean
  static constexpr uint32_t kUntilLonger = 4;  // rounds

  uint64_t length_ = kMost;
  uint32_t even_ = 0;  // rounds since the length changed
};

}  // namespace gpusim::simd
