#include "host/chip/calendar.h"

#include <algorithm>

namespace gpusim::host::chip {

void Calendar::mark(Ticks cycle, uint32_t cycles) {
  const auto mark_word = [&](uint64_t word, uint64_t mask) {
    taken_[word % kWords] = bits_of(word) | mask;
    words_[word % kWords] = static_cast<uint32_t>(word);
  };
  const uint64_t ones = ~uint64_t{0} >> (kBits - cycles);
  const uint32_t bit = cycle % kBits;
  mark_word(cycle / kBits, ones << bit);
  if (bit + cycles > kBits) mark_word(cycle / kBits + 1, ones >> (kBits - bit));
}

Ticks Calendar::take_from_list(Ticks at, Ticks length, Ticks now) {
  if (!list_) list_ = std::make_unique<SpanCalendar>();
  const Ticks begin = list_->take(at, length, now);
  list_begin_ = has_parts_ ? 0 : std::min(list_begin_, begin);
  return begin;
}

void Calendar::move_to_bits(Ticks limit, Ticks now) {
  list_begin_ = list_->take_out(now, limit, [&](Ticks begin, Ticks end) {
    for (Ticks cycle = std::max(begin, now) / kCycle; cycle < end / kCycle;) {
      const auto cycles = static_cast<uint32_t>(std::min<Ticks>(kBits, end / kCycle - cycle));
      mark(cycle, cycles);
      cycle += cycles;
    }
  });
}

void Calendar::move_to_list(Ticks now) {
  for (uint64_t i = 0; i < kWords; ++i) {
    const uint64_t word = now / kWordTicks + i;
    for (uint64_t left = bits_of(word); left != 0;) {
      const auto first = static_cast<uint32_t>(std::countr_zero(left));
      const auto cycles = static_cast<uint32_t>(std::countr_one(left >> first));
      take_from_list(word * kWordTicks + first * kCycle, cycles * kCycle, now);
      left &= cycles == kBits ? 0 : ~((~uint64_t{0} >> (kBits - cycles)) << first);
    }
    if (bits_of(word) != 0) taken_[word % kWords] = 0;
  }
}

Ticks Calendar::take_elsewhere(Ticks at, Ticks length, Ticks now) {
  const bool has_parts = (at | length) % kCycle != 0 || length == 0 || length > kWordTicks;
  if (has_parts && !has_parts_) {
    has_parts_ = true;
    move_to_list(now);
  }
  // The map ends here.
  const Ticks end = (now / kWordTicks + kWords) * kWordTicks;
  if (has_parts_ || at >= end) return take_from_list(at, length, now);
  if (list_begin_ < end) move_to_bits(end, now);
  // Where so many bits in a row are free, in pieces of 64 that begin anywhere.
  const auto cycles = static_cast<uint32_t>(length / kCycle);
  Ticks cycle = at / kCycle;
  while (cycle + cycles <= end / kCycle) {
    const uint64_t word = cycle / kBits;
    const uint32_t bit = cycle % kBits;
    uint64_t any = bits_of(word) >> bit;
    if (bit != 0 && word + 1 < end / kWordTicks) any |= bits_of(word + 1) << (kBits - bit);
    // Then bit i: it or one of those behind it that are needed, too.
    for (uint32_t have = 1; have < cycles;) {
      const uint32_t more = std::min(have, cycles - have);
      any |= any >> more;
      have += more;
    }
    const auto first = static_cast<uint32_t>(std::countr_one(any));
    if (first + cycles > kBits) {
      cycle += kBits + 1 - cycles;
      continue;
    }
    cycle += first;
    if (cycle + cycles > end / kCycle) break;
    mark(cycle, cycles);
    return cycle * kCycle;
  }
  // Behind what is taken last in the map, and on in the list; or all of it there.
  Ticks begin = end;
  for (uint64_t word = end / kWordTicks; begin > at && word-- > now / kWordTicks;) {
    const auto free = static_cast<uint32_t>(std::countl_zero(bits_of(word)));
    begin -= free * kCycle;
    if (free != kBits) break;
  }
  begin = std::max(begin, at);
  if (begin == end || begin + length > list_begin_) return take_from_list(end, length, now);
  mark(begin / kCycle, static_cast<uint32_t>((end - begin) / kCycle));
  take_from_list(end, begin + length - end, now);
  return begin;
}

}  // namespace gpusim::host::chip
