// Warps of a guest (uir/warp.h): core n of a warp is lane n of a device's warp. Lanes come together
// before each access to memory and at each row of warps, as if they executed every micro-op in
// step; what lies between is of each lane alone.
#pragma once
#include "device_sim/core/warp_results.h"
#include "device_sim/cuda/warp.cuh"

namespace gpusim::cuda {

__device__ __forceinline__ Shape shape_of(Op op) {
  switch (op) {
#define GPUSIM_UOP(name, shape, fields, traits) \
  case Op::name:                                \
    return Shape::shape;
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  }
  return Shape::kTrap;
}

// Those before which lanes in step come together, without rows of warps.
constexpr bool is_access(Shape s) { return s >= Shape::kLdI && s <= Shape::kStx128; }
constexpr bool is_load(Shape s) { return s >= Shape::kLdI && s <= Shape::kLdW; }

template <class Ctx, class View>
__device__ __forceinline__ bool execute_access(const Uop& u, Ctx& ctx, const View& memory,
                                               uint32_t core, StopInfo& why) {
  switch (u.op) {
#define GPUSIM_UOP(name, shape, fields, traits)                                   \
  case Op::name:                                                                  \
    if constexpr (is_access(Shape::shape))                                        \
      return execute_row<Op::name>(u, ctx, memory, core, why) != Outcome::kFault; \
    else                                                                          \
      return true;
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  }
  return true;
}

// Of an access of such a shape.
template <class Ctx>
__device__ __forceinline__ uint64_t address_of(const Uop& u, Shape shape, const Ctx& ctx) {
  const uint64_t a = ctx.get(u.a);
  switch (shape) {
    case Shape::kLdI:
    case Shape::kStI:
      return access_address<AddressMode::kImmediate>(a, 0, u.imm);
    case Shape::kLdX:
    case Shape::kStX:
      return access_address<AddressMode::kIndex>(a, ctx.get(u.b), u.imm);
    case Shape::kLdW:
    case Shape::kStW:
      return access_address<AddressMode::kIndex32>(a, ctx.get(u.b), u.imm);
    default:
      return a;
  }
}

// All lanes call it. Runs the active ones from `at` to the end of a block; returns as run_blocks().
template <class View>
__device__ __forceinline__ uint32_t Warp::run_in_step(uint32_t at, Deed& deed) {
  uint32_t next = kNoUop;
  bool runs = is_active();
  for (;;) {
    if (runs) {
      deed = kNothing;
      next = run_blocks<false, View>(at, deed);
    }
    const bool is_here = deed == kComesTogether;
    const uint32_t here = __ballot_sync(kAllLanes, is_here);
    if (here == 0) return next;
    // The lanes that have not stopped went the same way.
    at = __shfl_sync(kAllLanes, next, static_cast<int>(lowest_bit(here)));
    const Uop u = fetch(machine().code, at);
    const Shape shape = shape_of(u.op);
    if (is_access(shape))
      runs = access<View>(u, shape, at, is_here);
    else if (shape == Shape::kEnd)
      runs = end_threads(u, at, here);
    else
      runs = meet_in_warp(u, at, here);
    if (is_here && !runs) {
      next = kNoUop;
      deed = kNothing;
    }
    ++at;
  }
}

// Lanes that change the same words do so in their order, others at once. True: this lane goes on.
// Words are pairs of 8 bytes: an access that is not aligned may lie in two of them, and comes at
// any time.
template <class View>
__device__ __forceinline__ bool Warp::access(const Uop& u, Shape shape, uint32_t at, bool is_here) {
  uint32_t turn = 0;
  if (!is_load(shape)) {
    const uint64_t nobody = ~uint64_t{threadIdx.x % kWarpSize};
    const uint64_t words = is_here ? address_of(u, shape, context_) >> 4 : nobody;
    const uint32_t together = __match_any_sync(kAllLanes, words);
    if (is_here) turn = static_cast<uint32_t>(__popc(together & (lane_bit_ - 1)));
  }
  const uint32_t last = ~warp_min(~turn);
  bool goes_on = is_here;
  for (uint32_t t = 0; t <= last; ++t) {
    if (is_here && turn == t) {
      if (!execute_access(u, context_, memory<View>(), core_, launch_.records[core_].why)) {
        park(at);
        stop(CoreStatus::kFault, at);
        goes_on = false;
      }
    }
    __syncwarp();
  }
  return goes_on;
}

// The lanes `here` are at the end of their threads.
__device__ __forceinline__ bool Warp::end_threads(const Uop& u, uint32_t at, uint32_t here) {
  alive_ &= ~here;
  if ((here & lane_bit_) == 0) return false;
  complete(u.block());
  park(at);
  stop(kEnded, at);
  return false;
}

// The lanes `here` are at a row of warps. True: this lane goes on. Nearly always all living lanes
// that a mask names are here with it; others wait until the host has looked who is where.
__device__ __forceinline__ bool Warp::meet_in_warp(const Uop& u, uint32_t at, uint32_t here) {
  const bool is_here = (here & lane_bit_) != 0;
  bool goes_on = false;
  if (u.op == Op::warp && !converges(static_cast<WarpOp>(u.aux))) {
    if (is_here) find_alone(u, here);
    goes_on = is_here;
  } else if (u.op == Op::warp || u.op == Op::warp_sync) {
    const WarpFields f = WarpFields::unpack(u.imm);
    uint32_t mask = f.mask;
    if (f.mask_in_slot && is_here) mask = static_cast<uint32_t>(context_.get(u.c));
    const uint32_t same = __match_any_sync(kAllLanes, is_here ? mask : ~uint64_t{0});
    const uint32_t members = (mask & lane_bit_) != 0 ? mask & alive_ : lane_bit_;
    goes_on = is_here && (members & ~same) == 0;
    if (u.op == Op::warp) {
      const uint64_t result = find_together(u, f, is_here, members);
      if (goes_on) context_.set(u.d, result);
    }
  } else if (launch_.machine.one_warp_each) {
    goes_on = meet_in_cta(u, here);
  }
  if (is_here && !goes_on) {
    park(at);
    stop(kAtRow, at);
  }
  return goes_on;
}

// The result of an operation for which lanes do not wait.
__device__ __forceinline__ void Warp::find_alone(const Uop& u, uint32_t here) {
  const auto op = static_cast<WarpOp>(u.aux);
  if (op == WarpOp::kActiveMask) return context_.set(u.d, here);
  const WarpFields f = WarpFields::unpack(u.imm);
  const uint64_t b = context_.get(u.b);
  const uint32_t by = f.lane_in_slot ? static_cast<uint32_t>(b) : f.lane;
  const uint32_t clamp = f.clamp_in_slot ? static_cast<uint32_t>(b >> 32) : f.clamp;
  context_.set(u.d, shuffle_source(op, threadIdx.x % kWarpSize, by, clamp).in_range);
}

// All lanes call it. This lane's result, if all its `members` are here: as find_warp_results().
__device__ __forceinline__ uint64_t Warp::find_together(const Uop& u, const WarpFields& f,
                                                        bool is_here, uint32_t members) const {
  const auto op = static_cast<WarpOp>(u.aux);
  const uint32_t lane = threadIdx.x % kWarpSize;
  const uint64_t a = is_here ? warp_source(op, f, context_.get(u.a)) : 0;
  if (is_shuffle(op)) {
    const uint64_t b = is_here ? context_.get(u.b) : 0;
    const uint32_t by = f.lane_in_slot ? static_cast<uint32_t>(b) : f.lane;
    const uint32_t clamp = f.clamp_in_slot ? static_cast<uint32_t>(b >> 32) : f.clamp;
    const uint32_t from = shuffle_source(op, lane, by, clamp).lane;
    const uint64_t other = __shfl_sync(kAllLanes, a, static_cast<int>(from));
    return (members >> from & 1) != 0 ? other : a;
  }
  if (is_vote(op)) {
    const uint32_t yes = __ballot_sync(kAllLanes, a != 0) & members;
    switch (op) {
      case WarpOp::kVoteAll:
        return yes == members;
      case WarpOp::kVoteAny:
        return yes != 0;
      case WarpOp::kVoteUni:
        return yes == members || yes == 0;
      default:
        return yes;
    }
  }
  if (is_match(op)) {
    const uint32_t equal = __match_any_sync(kAllLanes, a) & members;
    return op == WarpOp::kMatchAny || equal == members ? equal : 0;
  }
  if (op == WarpOp::kElect) return lowest_bit(members);
  // Sets of lanes with different masks are here at once.
  uint32_t sum = 0, left = members;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint32_t x = __shfl_sync(kAllLanes, static_cast<uint32_t>(a), static_cast<int>(i));
    if ((members >> i & 1) == 0) continue;
    sum = left == members ? x : reduced(op, sum, x);
    left &= left - 1;
  }
  return sum;
}

// All lanes call it. The same at a barrier of a CTA that is one warp: it opens when all living
// lanes are at it.
__device__ __forceinline__ bool Warp::meet_in_cta(const Uop& u, uint32_t here) {
  if (u.op == Op::cta_sync && u.aux != static_cast<uint8_t>(CtaSync::kSync)) return false;
  const bool is_here = (here & lane_bit_) != 0;
  const BarrierFields f = BarrierFields::unpack(u.imm);
  uint32_t barrier = f.barrier, threads = f.threads;
  if (f.barrier_in_slot && is_here) barrier = static_cast<uint32_t>(context_.get(u.b));
  if (f.threads_in_slot && is_here) threads = static_cast<uint32_t>(context_.get(u.c));
  const bool is_usual = barrier < kCtaBarriers && (threads == 0 || threads == kWarpLanes);
  const uint32_t usual = __ballot_sync(kAllLanes, is_here && is_usual);
  const uint32_t same = __match_any_sync(kAllLanes, is_here ? barrier : ~0u);
  const bool is_true = is_here && u.op == Op::cta_reduce && (context_.get(u.a) != 0) != f.negated;
  const uint32_t yes = __ballot_sync(kAllLanes, is_true);
  if (usual != alive_ || !is_here || same != alive_) return false;
  if (u.op == Op::cta_reduce) {
    const auto kind = static_cast<CtaReduce>(u.aux);
    context_.set(u.d, kind == CtaReduce::kPopc  ? static_cast<uint32_t>(__popc(yes))
                      : kind == CtaReduce::kAnd ? yes == alive_
                                                : yes != 0);
  }
  return true;
}

// The kernel for modules with warps.
template <class View>
__device__ __forceinline__ void simulate_warps_slice(const Launch& launch) {
  const uint32_t number = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
  const WarpStart warp = number < launch.runnable ? launch.warps[number] : WarpStart{};
  const uint32_t lane = threadIdx.x % kWarpSize;
  Warp(launch, warp.first_core + lane, (warp.runnable >> lane & 1) != 0, warp.alive)
      .run_slice<false, CtaView<View>, NoRegions>();
}

}  // namespace gpusim::cuda
