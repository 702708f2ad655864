// One micro-op for one core. The scalar backend and every CUDA thread run exactly this.
#pragma once
#include "device_sim/core/effects.h"
#include "device_sim/core/vector.h"
#include "device_sim/uir/semantics.h"

namespace gpusim {

enum class Outcome {
  kNext,
  kFault,
  kMeets,  // lanes in step: the micro-op was not executed, see `kInStep`
  // Ends of blocks:
  kTaken,
  kNotTaken,
  kJump,
  kLink,
  kJumpReg,
  kGiveWay,
  kSignalled,
  kService,
};

// Of a core whose context can tell.
template <class Ctx, class Memory>
GPUSIM_HD_INLINE uint64_t clock_of(const Ctx& ctx, const Memory& memory) {
  if constexpr (requires { ctx.clock(memory); })
    return ctx.clock(memory);
  else
    return 0;
}

// Executes micro-ops of `code` up to one after which control does not just go on. The loop is
// around the switch and not around a call, because compilers for GPUs do not thread jumps: each
// micro-op would leave an outcome in a register, for the caller to test. `Code` has `next()`, the
// micro-op that is next; `kGoesOn`: whether there may be more than one; `kHasVectors`: whether some
// may be of shape kVector, which take a GPU's registers from all others; `kInStep`: whether lanes
// go in step: they come back with kMeets before each access to memory and each row of warps.
// `Memory`: a MemoryView, or what has its functions. Where kJumpReg leads, slot a says.
template <class Code, class Ctx, class Memory>
GPUSIM_HD_INLINE Outcome execute_all(Code& code, Ctx& ctx, const Memory& memory, uint32_t core,
                                     StopInfo& stop) {
  using SD = sem::ScalarDomain;
  do {
    const Uop& u = code.next();
    switch (u.op) {
#define GPUSIM_ROW(name) case Op::name:
#include "device_sim/core/execute_rows.h"
      default:  // no checked module has such numbers
        // As another way out of the loop it would cost three machine instructions per micro-op.
        if constexpr (Code::kGoesOn) break;
        stop = {Fault::kUndefined, 0};
        return Outcome::kFault;
    }
  } while (Code::kGoesOn);
  return Outcome::kNext;
}

struct OneMicroOp {
  static constexpr bool kGoesOn = false, kHasVectors = true, kInStep = false;
  const Uop& u;
  GPUSIM_HD_INLINE const Uop& next() const { return u; }
};

// The same for a micro-op that is known when this is compiled: nothing of any other is left. SD: a
// domain like ScalarDomain.
template <Op op, class SD = sem::ScalarDomain, class Ctx, class Memory>
GPUSIM_HD_INLINE Outcome execute_row(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                     StopInfo& stop) {
  using Code = OneMicroOp;
  do {
#define GPUSIM_ROW(name) if constexpr (op == Op::name)
#include "device_sim/core/execute_rows.h"
  } while (false);
  return Outcome::kNext;
}

template <class Ctx, class Memory>
GPUSIM_HD_INLINE Outcome execute(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                 StopInfo& stop) {
  OneMicroOp only{u};
  return execute_all(only, ctx, memory, core, stop);
}

}  // namespace gpusim
