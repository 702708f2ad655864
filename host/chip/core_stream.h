// The words of a core's stream, for those who read it.
#pragma once
#include <cstdint>

#include "device_sim/uir/journal.h"
#include "host/chip/program_model.h"

namespace gpusim::host::chip {

// Beside kBlockMark: an order, whose number stands below.
inline constexpr uint64_t kOrderMark = kBlockMark | uint64_t{1} << 62;
// The same beside a ClockWord.
inline constexpr uint64_t kClockMark = kOrderMark | uint64_t{1} << 61;
static_assert(ClockWord::kBits <= 61);
constexpr bool is_clock(uint64_t word) { return (word & kClockMark) == kClockMark; }
constexpr bool is_order(uint64_t word) { return (word & kClockMark) == kOrderMark; }
constexpr bool is_block(uint64_t word) { return (word & kOrderMark) == kBlockMark; }

// Instructions between two waits that only look, and in a barrier beside its looks.
inline constexpr uint32_t kMostOfLook = 64, kMostOfBarrier = 128;

// From one clock of a core to a later one. Nothing, where a block did not come to its end, so that
// the earlier one was taken to be later.
struct Gap {
  Ticks ticks = 0;
  uint64_t count = 0;
};
inline Gap gap_between(uint64_t from, uint64_t to) {
  const uint64_t count = (ClockWord::count(to) - ClockWord::count(from)) & ClockWord::kCount;
  if (count == 0 || count > ClockWord::kCount / 2) return {};
  return {(ClockWord::ticks(to) - ClockWord::ticks(from)) & ClockWord::kTicks, count};
}
inline uint64_t end_of(const BlockModel& block, uint64_t clock) {
  return ClockWord::pack(ClockWord::ticks(clock) + block.cost,
                         ClockWord::count(clock) + block.insn_count);
}

}  // namespace gpusim::host::chip
