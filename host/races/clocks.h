// Vector clocks of cores and of the words by which they synchronise.
//
// A core's clock counts its fences. A core has seen what another did up to that core's number in
// its own vector. Fences order as C11's do: what a core stores to a word after a fence publishes
// what it had seen at that fence; what it loads from the word before a fence, it has seen from that
// fence on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gpusim::host::races {

class Clocks {
 public:
  // Words' clocks take up to that much; after that they share.
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;

  explicit Clocks(uint32_t cores);

  uint32_t now(uint32_t core) const { return of_core_[at(core, core)]; }
  bool has_seen(uint32_t core, uint32_t other, uint32_t clock) const {
    return clock <= of_core_[at(core, other)];
  }
  // `core` stored to a word by which cores synchronise.
  void publish(uint32_t core, uint64_t word);
  // It loaded from one: seen from its next fence on.
  void observe(uint32_t core, uint64_t word);
  void fence(uint32_t core);
  // `to` goes on after all that `from` did so far.
  void order(uint32_t from, uint32_t to);
  // As new.
  void reset();
  // What `core` has seen, itself included, into `seen`, where that is more; and what is there into
  // `core`. For barriers.
  void collect(uint32_t core, std::vector<uint32_t>& seen) const;
  void absorb(uint32_t core, const std::vector<uint32_t>& seen);
  // Words that share a clock with others, because there are too many.
  uint64_t shared_words() const { return shared_words_; }

 private:
  struct WordClock {
    std::vector<uint32_t> seen;
    uint64_t version = 0;
  };
  struct Acquired {
    uint32_t clock = ~uint32_t{0};
    uint64_t version = 0;
  };
  size_t at(uint32_t core, uint32_t other) const { return size_t{core} * cores_ + other; }
  uint32_t clock_of(uint64_t word);
  void join(uint32_t core, const std::vector<uint32_t>& seen);

  const uint32_t cores_;
  std::vector<uint32_t> of_core_;  // [core][other]
  std::unordered_map<uint64_t, uint32_t> number_of_;
  std::vector<WordClock> of_word_;
  std::vector<std::vector<uint32_t>> observed_;  // per core: numbers of clocks
  // Of each core: clocks that it has not to look at again.
  std::vector<std::array<Acquired, 8>> acquired_;
  uint64_t shared_words_ = 0;
};

}  // namespace gpusim::host::races
