// What lanes of a warp find out together (uir/warp.h): plain functions of their operands.
#pragma once
#include <bit>
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"
#include "device_sim/uir/warp.h"

namespace gpusim {

// Where a shuffle reads. PTX ISA, shfl.sync.
struct ShuffleSource {
  uint32_t lane;
  bool in_range;  // else `lane` is the reader's own
};
GPUSIM_HD_INLINE ShuffleSource shuffle_source(WarpOp op, uint32_t lane, uint32_t b, uint32_t c) {
  const uint32_t segment = c >> 8 & 31, clamp = c & 31, by = b & 31;
  const auto least = static_cast<int>(lane & segment);
  const auto most = least | static_cast<int>(clamp & ~segment);
  const auto own = static_cast<int>(lane), distance = static_cast<int>(by);
  int from;
  bool in_range = false;
  switch (op) {
    case WarpOp::kShuffleUp:
    case WarpOp::kInRangeUp:
      from = own - distance;
      in_range = from >= most;
      break;
    case WarpOp::kShuffleDown:
    case WarpOp::kInRangeDown:
      from = own + distance;
      in_range = from <= most;
      break;
    case WarpOp::kShuffleBfly:
    case WarpOp::kInRangeBfly:
      from = own ^ distance;
      in_range = from <= most;
      break;
    default:
      from = least | static_cast<int>(by & ~segment);
      in_range = from <= most;
  }
  return {in_range ? static_cast<uint32_t>(from) : lane, in_range};
}

// Operands of the lanes of a warp.
struct WarpOperands {
  uint64_t a[kWarpLanes];
  uint32_t b[kWarpLanes], c[kWarpLanes];  // of shuffles
};

// The part of a that the operation looks at.
GPUSIM_HD_INLINE uint64_t warp_source(WarpOp op, const WarpFields& f, uint64_t a) {
  if (is_vote(op)) return (a != 0) != f.negated ? 1 : 0;
  return f.wide ? a : static_cast<uint32_t>(a);
}
// A lane's operands, from what its slots a and b hold.
GPUSIM_HD_INLINE void set_operands(WarpOp op, const WarpFields& f, uint32_t lane, uint64_t a,
                                   uint64_t b, WarpOperands& to) {
  to.a[lane] = warp_source(op, f, a);
  to.b[lane] = f.lane_in_slot ? static_cast<uint32_t>(b) : f.lane;
  to.c[lane] = f.clamp_in_slot ? static_cast<uint32_t>(b >> 32) : f.clamp;
}

GPUSIM_HD_INLINE uint32_t reduced(WarpOp op, uint32_t x, uint32_t y) {
  const auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
  switch (op) {
    case WarpOp::kReduceAdd:
      return x + y;
    case WarpOp::kReduceMinU:
      return y < x ? y : x;
    case WarpOp::kReduceMaxU:
      return y > x ? y : x;
    case WarpOp::kReduceMinS:
      return sy < sx ? y : x;
    case WarpOp::kReduceMaxS:
      return sy > sx ? y : x;
    case WarpOp::kReduceAnd:
      return x & y;
    case WarpOp::kReduceOr:
      return x | y;
    default:
      return x ^ y;
  }
}

// The result of each member, of which there is one at least.
inline void find_warp_results(WarpOp op, uint32_t members, const WarpOperands& in, uint64_t* d) {
  const auto lowest = static_cast<uint32_t>(std::countr_zero(members));
  const auto for_members = [&](auto f) {
    for (uint32_t left = members; left != 0; left &= left - 1)
      f(static_cast<uint32_t>(std::countr_zero(left)));
  };
  if (is_shuffle(op)) {
    for_members([&](uint32_t lane) {
      const uint32_t from = shuffle_source(op, lane, in.b[lane], in.c[lane]).lane;
      d[lane] = in.a[members >> from & 1 ? from : lane];
    });
    return;
  }
  const auto equal_to = [&](uint64_t value) {
    uint32_t mask = 0;
    for_members([&](uint32_t lane) { mask |= uint32_t{in.a[lane] == value} << lane; });
    return mask;
  };
  if (op == WarpOp::kMatchAny) {
    for_members([&](uint32_t lane) { d[lane] = equal_to(in.a[lane]); });
    return;
  }
  uint64_t result = 0;
  switch (op) {
    case WarpOp::kVoteAll:
      result = equal_to(1) == members;
      break;
    case WarpOp::kVoteAny:
      result = equal_to(1) != 0;
      break;
    case WarpOp::kVoteUni:
      result = equal_to(in.a[lowest]) == members;
      break;
    case WarpOp::kVoteBallot:
      result = equal_to(1);
      break;
    case WarpOp::kMatchAll:
      result = equal_to(in.a[lowest]) == members ? members : 0;
      break;
    case WarpOp::kElect:
      result = lowest;
      break;
    default: {
      auto sum = static_cast<uint32_t>(in.a[lowest]);
      for (uint32_t left = members & (members - 1); left != 0; left &= left - 1)
        sum = reduced(op, sum, static_cast<uint32_t>(in.a[std::countr_zero(left)]));
      result = sum;
    }
  }
  for_members([&](uint32_t lane) { d[lane] = result; });
}

}  // namespace gpusim
