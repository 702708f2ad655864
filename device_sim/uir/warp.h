// Operations of warps and CTAs: what the rows warp, warp_sync, cta_sync and cta_reduce hold in aux
// and imm. Only modules with a warp size (uir/module.h) have them.
//
// A warp operation has a member mask, one bit per lane of the warp. A lane waits at it until all
// living lanes of its mask are at such an operation (the same row and aux) with the same mask; then
// all of them have their results at once. Lanes that ended do not count. A lane that is not in its
// own mask is alone: it does not wait.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim {

inline constexpr uint32_t kWarpLanes = 32;
inline constexpr uint32_t kCtaBarriers = 16;
inline constexpr uint32_t kMostCtaThreads = 1024;

// aux of `warp`. Results are zero-extended; predicates are 0 or 1, and true where a is not zero.
enum class WarpOp : uint8_t {
  // d = the low 32 bits of another lane's a, or one's own where there is no such lane in the
  // segment
  // or it takes no part. PTX ISA, shfl.sync.
  kShuffleIdx,
  kShuffleUp,
  kShuffleDown,
  kShuffleBfly,
  // d = whether a shuffle with these operands has another lane to read (its second result). Lanes
  // compute it apart: it does not wait, and looks at no mask.
  kInRangeIdx,
  kInRangeUp,
  kInRangeDown,
  kInRangeBfly,
  // Of the members' predicates in a.
  kVoteAll,
  kVoteAny,
  kVoteUni,
  kVoteBallot,
  // d = the members whose a is the lane's own; d = all members if all have the same a, else 0.
  kMatchAny,
  kMatchAll,
  // Of the low 32 bits of the members' a.
  kReduceAdd,
  kReduceMinU,
  kReduceMaxU,
  kReduceMinS,
  kReduceMaxS,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  // d = the number of the lowest member.
  kElect,
  // d = lanes of the warp that are here now, the lane itself among them. It does not wait.
  kActiveMask,
};
inline constexpr WarpOp kLastWarpOp = WarpOp::kActiveMask;

GPUSIM_HD_INLINE constexpr bool is_shuffle(WarpOp op) { return op <= WarpOp::kShuffleBfly; }
GPUSIM_HD_INLINE constexpr bool is_in_range(WarpOp op) {
  return op >= WarpOp::kInRangeIdx && op <= WarpOp::kInRangeBfly;
}
GPUSIM_HD_INLINE constexpr bool is_vote(WarpOp op) {
  return op >= WarpOp::kVoteAll && op <= WarpOp::kVoteBallot;
}
GPUSIM_HD_INLINE constexpr bool is_match(WarpOp op) {
  return op == WarpOp::kMatchAny || op == WarpOp::kMatchAll;
}
// Lanes wait for each other.
GPUSIM_HD_INLINE constexpr bool converges(WarpOp op) {
  return !is_in_range(op) && op != WarpOp::kActiveMask;
}

// imm of `warp` and `warp_sync`: operands that are constants. Others are in slots.
struct WarpFields {
  uint32_t mask = ~uint32_t{0};  // members; else the low half of slot c
  uint8_t lane = 0;              // shuffles: b of PTX, below 32; else the low half of slot b
  uint16_t clamp = 0;            // shuffles: c of PTX, a clamp in bits 4:0 and a mask in bits 12:8;
                                 // else the high half of slot b
  bool mask_in_slot = false, lane_in_slot = false, clamp_in_slot = false;
  bool negated = false;  // votes: the predicate is true where a is zero
  bool wide = false;     // matches: all 64 bits of a, else the low half

  static constexpr uint16_t kClampBits = 0x1f1f;
  constexpr uint64_t pack() const {
    return mask | uint64_t{lane} << 32 | uint64_t{clamp} << 40 | uint64_t{mask_in_slot} << 56 |
           uint64_t{lane_in_slot} << 57 | uint64_t{clamp_in_slot} << 58 | uint64_t{negated} << 59 |
           uint64_t{wide} << 60;
  }
  GPUSIM_HD_INLINE static constexpr WarpFields unpack(uint64_t imm) {
    return {.mask = static_cast<uint32_t>(imm),
            .lane = static_cast<uint8_t>(imm >> 32),
            .clamp = static_cast<uint16_t>(imm >> 40),
            .mask_in_slot = (imm >> 56 & 1) != 0,
            .lane_in_slot = (imm >> 57 & 1) != 0,
            .clamp_in_slot = (imm >> 58 & 1) != 0,
            .negated = (imm >> 59 & 1) != 0,
            .wide = (imm >> 60 & 1) != 0};
  }
  // What the operation does not look at is as in a fresh WarpFields.
  constexpr bool is_valid(WarpOp op) const {
    const bool shuffles = is_shuffle(op) || is_in_range(op);
    return lane < 32 && (clamp & ~kClampBits) == 0 && (shuffles || (lane == 0 && clamp == 0)) &&
           (shuffles || (!lane_in_slot && !clamp_in_slot)) && (!negated || is_vote(op)) &&
           (!wide || is_match(op)) && (converges(op) || !mask_in_slot);
  }
};

// aux of `cta_sync` and `cta_reduce`. The last two are of the cluster's one barrier, and have a
// fresh BarrierFields: each lane arrives by itself and goes on, and waits later until all living
// threads of the cluster have arrived. To arrive twice without waiting, or to wait without having
// arrived, is a fault.
enum class CtaSync : uint8_t { kSync, kArrive, kClusterArrive, kClusterWait };
GPUSIM_HD_INLINE constexpr bool is_of_cluster(uint32_t aux) {
  return aux >= static_cast<uint32_t>(CtaSync::kClusterArrive);
}
enum class CtaReduce : uint8_t { kPopc, kAnd, kOr };

// imm of `cta_sync` and `cta_reduce`.
//
// A lane first waits until all living lanes of its warp are at an operation on the same barrier;
// then the warp arrives, as 32 threads whatever the number of its lanes. Lanes at kArrive go on.
// The others wait until as many threads have arrived as the count says, or all warps with living
// lanes; then the barrier is as new.
struct BarrierFields {
  uint8_t barrier = 0;   // which of the CTA's 16; else the low half of slot b
  uint16_t threads = 0;  // a multiple of 32; 0: all of the CTA; else the low half of slot c
  bool barrier_in_slot = false, threads_in_slot = false;
  bool negated = false;  // cta_reduce: the predicate is true where a is zero

  constexpr uint64_t pack() const {
    return barrier | uint64_t{threads} << 16 | uint64_t{barrier_in_slot} << 56 |
           uint64_t{threads_in_slot} << 57 | uint64_t{negated} << 58;
  }
  GPUSIM_HD_INLINE static constexpr BarrierFields unpack(uint64_t imm) {
    return {.barrier = static_cast<uint8_t>(imm),
            .threads = static_cast<uint16_t>(imm >> 16),
            .barrier_in_slot = (imm >> 56 & 1) != 0,
            .threads_in_slot = (imm >> 57 & 1) != 0,
            .negated = (imm >> 58 & 1) != 0};
  }
  GPUSIM_HD_INLINE static constexpr bool is_count(uint64_t threads) {
    return threads % kWarpLanes == 0 && threads <= kMostCtaThreads;
  }
  constexpr bool is_valid() const { return barrier < kCtaBarriers && is_count(threads); }
};

// aux of the rows amo_fadd: log2 of the size, and what the word is.
enum class FloatWord : uint8_t {
  kF16 = 1,
  kBf16 = 1 | 1 << 2,
  kF32 = 2,
  kF32Flushed = 2 | 1 << 2,  // subnormal operands and results become zeros of their sign
  kF16x2 = 2 | 2 << 2,
  kBf16x2 = 2 | 3 << 2,
  kF64 = 3,
};
GPUSIM_HD_INLINE constexpr bool is_float_word(uint32_t aux) {
  const uint32_t size = aux & 3, kind = aux >> 2;
  return (size == 1 && kind < 2) || (size == 2 && kind < 4) || (size == 3 && kind == 0);
}

}  // namespace gpusim
