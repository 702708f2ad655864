// What the text of regions (regions.h) is made of.
#pragma once
#include "device_sim/core/execute.h"
#include "device_sim/cuda/region_view.cuh"

namespace gpusim::cuda {

// Slots whose numbers are known where they are used: registers. In halves, since most values have
// 32 bits: what is known of their upper halves is not lost in 64-bit shifts and masks.
template <uint32_t count>
struct LocalSlots {
  uint32_t low[count], high[count];
  __device__ __forceinline__ uint64_t get(Slot s) const { return uint64_t{high[s]} << 32 | low[s]; }
  __device__ __forceinline__ void set(Slot s, uint64_t value) {
    low[s] = static_cast<uint32_t>(value);
    high[s] = static_cast<uint32_t>(value >> 32);
  }
};

// Functions for rare cases are not inlined. The state word that they update by reference is a copy,
// or it would be in memory in the usual cases, too.
struct RegionDomain : sem::ScalarDomain {
  template <class F, class... A>
  GPUSIM_HD_INLINE static V map_state(M where, V otherwise, F f, V& state, A... a) {
    if (!where) return otherwise;
    V copy = state;
    const V result = f(a..., copy);
    state = copy;
    return result;
  }
};

// Whether the access `u` is one to the open part of memory, if there is one.
template <Op op, class Ctx, class View>
__device__ __forceinline__ bool accesses_open_part(const Uop& u, const Ctx& ctx, const View& view) {
  if constexpr (requires { view.open(); }) {
    using A = Access<op>;
    const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : ctx.get(u.b);
    return view.template is_open<typename A::Type>(
        access_address<A::kMode>(ctx.get(u.a), index, u.imm));
  } else {
    return false;
  }
}
template <Op op, class Ctx, class View>
__device__ __forceinline__ void access_open_part(const Uop& u, Ctx& ctx, const View& view,
                                                 uint32_t core, StopInfo& why) {
  if constexpr (requires { view.open(); })
    execute_row<op, RegionDomain>(u, ctx, view.open(), core, why);
}

// The micro-op `u`, at `place`. One that faults has done nothing, and is left to the interpreter.
#define GPUSIM_STEP(op, place)                                                         \
  if (execute_row<Op::op, RegionDomain>(u, s, memory, core, why) == Outcome::kFault) { \
    at = place;                                                                        \
    goto leave;                                                                        \
  }
// The same of a copy of the slots, ahead of time, for what accesses in the same block need.
#define GPUSIM_AHEAD(op) execute_row<Op::op, RegionDomain>(u, ahead, memory, core, why);
#define GPUSIM_LOOK_AHEAD(op) are_open &= accesses_open_part<Op::op>(u, ahead, memory);
// An access of which that was true.
#define GPUSIM_STEP_OPEN(op) access_open_part<Op::op>(u, s, memory, core, why);
#define GPUSIM_IS_TAKEN(op) \
  execute_row<Op::op, RegionDomain>(u, s, memory, core, why) == Outcome::kTaken

// Where a block begins. scripts/gpu-regions makes an instruction of it, to find the place again.
#ifndef GPUSIM_MARK
#define GPUSIM_MARK(block)
#endif

}  // namespace gpusim::cuda
