// Whose turn it is when the next slice of a group begins (core/turns.h).
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "device_sim/core/turns.h"

namespace gpusim::simd {

// Turns::patience of a group where it is the turn of the lane after Turns::lane.
inline constexpr int64_t kNextTurn = std::numeric_limits<int64_t>::min() / 2;

// Turns that lanes of a group got because they came back from system calls.
struct CallTurns {
  static constexpr int32_t kMost = 8, kOthersNext = -1;
  int32_t given = 0;  // since the last turn in the order of lanes; or that one is next
  uint32_t lane = 0;  // that got that one

  bool is_sound() const { return given >= kOthersNext && given <= kMost && lane < 64; }
};

// The lane comes back from a system call, while others of its group run. They may spin until it has
// done something, and it may need many calls for that: so it has its turn soon, and at once where
// lanes have been apart for some turns. Each of those is longer than the one before, so that loops
// can end; they are short again after a call. A lane that calls again and again must not keep the
// others from running: after some such turns the order of lanes goes on where it was.
inline void give_next_turn(Turns& turns, CallTurns& calls, uint32_t lane) {
  constexpr int32_t kApart = 2;
  constexpr int64_t kSoon = 2048;
  if (calls.given == CallTurns::kOthersNext) return;
  if (calls.given == 0) calls.lane = turns.lane;
  if (calls.given == CallTurns::kMost) {
    calls.given = CallTurns::kOthersNext;
    turns.lane = calls.lane;
    turns.end_at_next_slice();
    return;
  }
  ++calls.given;
  turns.lane = (lane - 1) % 64;
  if (std::exchange(turns.given, 0) < kApart && turns.patience <= kPatience) {
    turns.patience = std::min(turns.patience, kSoon);
    return;
  }
  turns.patience = kNextTurn;
  turns.aging = false;
}

}  // namespace gpusim::simd
