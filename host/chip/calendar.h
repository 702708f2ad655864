// When something that serves one request at a time is taken: a link, a port of a cache, a channel.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>

#include "host/chip/shape.h"
#include "host/chip/span_calendar.h"

namespace gpusim::host::chip {

// Requests come in the order in which cores issue them, and at other times than they arrive here:
// one that arrives earlier takes what is still free before those that were there first.
//
// A chip has thousands of these, and each message takes dozens of them. So the next 512 cycles are
// a map of bits, as long as all that comes begins and ends with cycles. What is further away is
// kept in a list until it is near; so is all, where there are parts of cycles.
class alignas(128) Calendar {
 public:
  // Takes `length` ticks in one piece, from the first free place at or after `at`, and returns
  // where that begins. `now`: no request will ever arrive before.
  Ticks take(Ticks at, Ticks length, Ticks now) {
    used_ += length;
    const Ticks cycles = length / kCycle;
    const uint64_t word = at / kWordTicks;
    const uint32_t bit = at / kCycle % kBits, slot = word % kWords;
    // It is near, in one word, and comes before the list.
    if ((at | length) % kCycle == 0 && word - now / kWordTicks < kWords &&
        cycles - 1 < kBits - bit && at + length <= list_begin_) {
      const uint64_t mask = ~uint64_t{0} >> (kBits - cycles) << bit;
      const uint64_t taken = words_[slot] == static_cast<uint32_t>(word) ? taken_[slot] : 0;
      if ((taken & mask) == 0) {
        words_[slot] = static_cast<uint32_t>(word);
        taken_[slot] = taken | mask;
        return at;
      }
    }
    return take_elsewhere(at, length, now);
  }
  Ticks used() const { return used_; }

 private:
  static constexpr uint32_t kWords = 8, kBits = 64;
  static constexpr Ticks kWordTicks = kBits * kCycle, kNever = ~Ticks{0};

  Ticks take_elsewhere(Ticks at, Ticks length, Ticks now);
  // Kept in the bits; `cycles`, 64 at most, end before the map does.
  void mark(Ticks cycle, uint32_t cycles);
  uint64_t bits_of(uint64_t word) const {
    const uint32_t slot = word % kWords;
    return words_[slot] == static_cast<uint32_t>(word) ? taken_[slot] : 0;
  }
  Ticks take_from_list(Ticks at, Ticks length, Ticks now);
  void move_to_bits(Ticks limit, Ticks now);
  void move_to_list(Ticks now);

  uint64_t taken_[kWords]{};  // a bit per cycle
  uint32_t words_[kWords]{};  // which 64 cycles each has: of those from now on, or older
  Ticks used_ = 0;
  Ticks list_begin_ = kNever;  // nothing in the list is earlier
  std::unique_ptr<SpanCalendar> list_;
  bool has_parts_ = false;  // of cycles, or pieces longer than a word: all is in the list
};
static_assert(sizeof(Calendar) == 128);

}  // namespace gpusim::host::chip
