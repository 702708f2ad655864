// How cores that run together but went different ways take turns: one policy for the groups of SIMD
// lanes and for the warps of a GPU. Any policy gives right results as long as everybody gets a turn;
// a bad one runs lanes apart that could run together.
//
// Lanes at the same place run as one set. The set with the smallest key goes first: deeper calls,
// then places that come earlier in core/order.h. Lanes that left a function or a loop early wait for
// those still inside it, and lanes behind catch up with those ahead. But no set may run for ever
// while others wait: it may spin until one of them does something.
#pragma once
#include <bit>
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

// Of a mask that is not empty.
GPUSIM_HD_INLINE uint32_t lowest_bit(uint64_t mask) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__ffsll(static_cast<long long>(mask)) - 1);
#else
  return static_cast<uint32_t>(std::countr_zero(mask));
#endif
}

// A waiting lane's priority, smaller first: it tells the place, too.
GPUSIM_HD_INLINE uint64_t key_of(uint32_t depth, uint32_t rank) {
  return uint64_t{0xffffffffu - depth} << 32 | rank;
}
GPUSIM_HD_INLINE uint32_t key_rank(uint64_t key) { return static_cast<uint32_t>(key); }
GPUSIM_HD_INLINE uint32_t key_depth(uint64_t key) {
  return 0xffffffffu - static_cast<uint32_t>(key >> 32);
}
inline constexpr uint64_t kNoKey = ~uint64_t{0};

// Instructions for which one set of lanes may run while others wait, from when not all lanes were
// together any more. It doubles with every turn until they are together again: a loop that some lanes
// left early must be able to end, or the early ones, given their turn, would run ahead into the next
// loop and never be caught up with. Splitting and joining do not renew it, so that lanes that spin
// cannot keep it up for ever; when all are together, none has been kept waiting.
inline constexpr int64_t kPatience = 16384;
inline constexpr int kMaxDoublings = 4;
// What each access that synchronises costs in patience: lanes that poll with such accesses may wait for
// lanes of their own group.
inline constexpr int64_t kPollCost = 512;
// A turn that lanes get because others gave way is short at first: those may have to do no more than
// open a barrier, and should not run ahead of the ones that wait at it.
inline constexpr int64_t kShortTurn = 32;
inline constexpr int kMaxShortDoublings = 8;
// What giving way takes off the slice, so that lanes that all wait for others elsewhere do not poll
// until the slice is over.
inline constexpr int64_t kGiveWayCost = 256;

struct Turns {
  int64_t patience = kPatience;  // instructions until another set gets its turn
  int64_t polled = 0;            // what kPollCost took of it
  int32_t given = 0;             // since all lanes were together
  int32_t waits = 0;             // of these, because lanes gave way
  uint32_t depth = 0;            // call depth at which the last one began
  uint32_t lane = 0;             // that got the last one
  bool aging = false;            // the active set was chosen by turn, not by key

  GPUSIM_HD_INLINE void charge_polls(int64_t count) {
    patience -= count * kPollCost;
    polled += count * kPollCost;
  }
  // The slice is over: another set gets its turn at the start of the next.
  GPUSIM_HD_INLINE void end_at_next_slice() {
    patience = 0;
    aging = false;
  }
};

// The functions below take a `Lanes`, which stands for up to 64 lanes:
//   uint64_t runnable() const, active() const;  masks; active is a subset of runnable
//   uint64_t key(uint32_t lane) const;          of a runnable lane that is not active
//   uint64_t least_key(uint64_t mask) const;    among those, mask not empty
//   uint32_t activate(uint64_t key);            the runnable lanes at the key's place become the
//                                               active ones; returns their micro-op
//   void rest();                                no lane is active
//   uint32_t depth() const;                     of calls, of the active lanes
// Each function returns the micro-op where the active lanes go on, or kNoUop if none is runnable. The
// lanes that were active have been parked, with a key.

template <class Lanes>
GPUSIM_HD_INLINE uint32_t activate_lanes(Turns& t, Lanes& lanes, uint64_t key) {
  const uint32_t pc = lanes.activate(key);
  if (lanes.active() == lanes.runnable()) t.given = t.waits = 0;
  return pc;
}

// By key.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule_by_key(Turns& t, Lanes& lanes) {
  const uint64_t runnable = lanes.runnable();
  const bool were_together = (runnable & ~lanes.active()) == 0;
  if (were_together || t.aging || t.patience <= 0) {
    t.patience = kPatience << t.given;
    t.polled = 0;
  }
  t.aging = false;
  lanes.rest();
  if (runnable == 0) return kNoUop;
  return activate_lanes(t, lanes, lanes.least_key(runnable));
}

// This runnable lane, and those at the same place, get a turn.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule_lane(Turns& t, Lanes& lanes, uint32_t lane) {
  t.lane = lane;
  const uint32_t pc = activate_lanes(t, lanes, lanes.key(lane));
  t.aging = true;
  t.patience = kPatience;
  t.polled = 0;
  t.given = t.given < kMaxDoublings ? t.given + 1 : kMaxDoublings;
  t.depth = lanes.depth();
  return pc;
}

// Gives lanes that were not chosen by key their turn.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule_turn(Turns& t, Lanes& lanes) {
  const uint64_t waiting = lanes.runnable() & ~lanes.active();
  if (waiting == 0) return schedule_by_key(t, lanes);
  const uint64_t after = t.lane >= 63 ? 0 : waiting & (~uint64_t{0} << (t.lane + 1));
  return schedule_lane(t, lanes, lowest_bit(after ? after : waiting));
}

// The same, after the active lanes gave way.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule_after_wait(Turns& t, Lanes& lanes) {
  const int64_t patience = kShortTurn << t.waits;
  const int32_t waits = t.waits < kMaxShortDoublings ? t.waits + 1 : kMaxShortDoublings;
  const uint32_t pc = schedule_turn(t, lanes);
  if (t.aging) {
    t.patience = patience;
    t.waits = waits;
  }
  return pc;
}

// The same, when patience ended: those who poll are treated as if they gave way.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule_after_patience(Turns& t, Lanes& lanes) {
  if (t.polled < kPatience / 2) return schedule_turn(t, lanes);
  const int32_t given = t.given;
  const uint32_t pc = schedule_after_wait(t, lanes);
  if (t.aging) t.given = given;
  return pc;
}

// After the active lanes split, stopped or do not go on: by key, unless patience ended.
template <class Lanes>
GPUSIM_HD_INLINE uint32_t schedule(Turns& t, Lanes& lanes) {
  return t.patience > 0 || t.aging ? schedule_by_key(t, lanes) : schedule_after_patience(t, lanes);
}

// Whether the active lanes, while others wait, go on where their key would be `key`; otherwise they
// are parked, then schedule(). `wait_key`: the least key of those that wait; `depth`: of calls, of
// the active lanes.
GPUSIM_HD_INLINE bool goes_on(const Turns& t, uint64_t key, uint64_t wait_key, uint32_t depth) {
  if (key_rank(key) == key_rank(wait_key)) return false;  // they join the best waiting set
  if (t.patience <= 0) return false;
  // A turn ends, too, where it leaves the function in which others wait: of a barrier, say.
  const uint32_t wait_depth = key_depth(wait_key);
  const bool left = depth < wait_depth && wait_depth <= t.depth;
  return (t.aging && !left) || wait_key >= key;
}

}  // namespace gpusim
