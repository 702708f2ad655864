// One micro-op for one core. The scalar backend and every CUDA thread run exactly this.
#pragma once
#include "device_sim/core/effects.h"
#include "device_sim/core/vector.h"
#include "device_sim/uir/semantics.h"

namespace gpusim {

enum class Outcome {
  kNext,
  kFault,
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

// Executes micro-ops of `code` up to one after which control does not just go on. The loop is
// around the switch and not around a call, because compilers for GPUs do not thread jumps: each
// micro-op would leave an outcome in a register, for the caller to test. `Code` has `next()`, the
// micro-op that is next; `kGoesOn`: whether there may be more than one; `kHasVectors`: whether some
// may be of shape kVector, which take a GPU's registers from all others. `Memory`: a MemoryView, or
// what has its functions. Where kJumpReg leads, slot a says.
template <class Code, class Ctx, class Memory>
GPUSIM_HD_INLINE Outcome execute_all(Code& code, Ctx& ctx, const Memory& memory, uint32_t core,
                                     StopInfo& stop) {
  using SD = sem::ScalarDomain;
  do {
    const Uop& u = code.next();
    switch (u.op) {
#define GPUSIM_RUN_VALUE(name, ...)            \
  case Op::name:                               \
    ctx.set(u.d, sem::name<SD>(__VA_ARGS__));  \
    break;
#define GPUSIM_GET_A ctx.get(u.a)
#define GPUSIM_GET_B ctx.get(u.b)
#define GPUSIM_GET_C ctx.get(u.c)
#define GPUSIM_RUN_kDI(name) GPUSIM_RUN_VALUE(name, u)
#define GPUSIM_RUN_kDA(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A)
#define GPUSIM_RUN_kDAI(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, u)
#define GPUSIM_RUN_kDAB(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B)
#define GPUSIM_RUN_kDABI(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B, u)
#define GPUSIM_RUN_kDABC(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C)
#define GPUSIM_RUN_kDABCI(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C, u)
#define GPUSIM_RUN_kSel(name) GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C, u)
#define GPUSIM_RUN_kSelCmp(name) \
  GPUSIM_RUN_VALUE(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C, ctx.get(u.e), u)
#define GPUSIM_RUN_kSelCmpI(name) GPUSIM_RUN_kDABCI(name)
#define GPUSIM_RUN_FP(name, ...)                               \
  case Op::name: {                                             \
    const Slot state = u.e;                                    \
    uint64_t fp = ctx.get(state);                              \
    const uint64_t result = sem::name<SD>(__VA_ARGS__, fp, u); \
    ctx.set(state, fp);                                        \
    ctx.set(u.d, result);                                      \
    break;                                                     \
  }
#define GPUSIM_RUN_kFA(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A)
#define GPUSIM_RUN_kFAB(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A, GPUSIM_GET_B)
#define GPUSIM_RUN_kFABC(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C)
#define GPUSIM_RUN_kGA GPUSIM_RUN_kFA
#define GPUSIM_RUN_kGAB GPUSIM_RUN_kFAB
#define GPUSIM_RUN_kGABC GPUSIM_RUN_kFABC
#define GPUSIM_RUN_EFFECT(name, call) \
  case Op::name:                      \
    if (!call(u, ctx, memory, core, stop)) return Outcome::kFault; \
    break;
#define GPUSIM_RUN_kLdI(name) GPUSIM_RUN_EFFECT(name, execute_load<Op::name>)
#define GPUSIM_RUN_kLdX(name) GPUSIM_RUN_EFFECT(name, execute_load<Op::name>)
#define GPUSIM_RUN_kLdW(name) GPUSIM_RUN_EFFECT(name, execute_load<Op::name>)
#define GPUSIM_RUN_kStI(name) GPUSIM_RUN_EFFECT(name, execute_store<Op::name>)
#define GPUSIM_RUN_kStX(name) GPUSIM_RUN_EFFECT(name, execute_store<Op::name>)
#define GPUSIM_RUN_kStW(name) GPUSIM_RUN_EFFECT(name, execute_store<Op::name>)
#define GPUSIM_RUN_kAmo(name) GPUSIM_RUN_EFFECT(name, execute_amo<Op::name>)
#define GPUSIM_RUN_kCas(name) GPUSIM_RUN_EFFECT(name, execute_cas)
#define GPUSIM_RUN_kCas128(name) GPUSIM_RUN_EFFECT(name, execute_cas128)
#define GPUSIM_RUN_kStx(name) GPUSIM_RUN_EFFECT(name, execute_stx)
#define GPUSIM_RUN_kStx128(name) GPUSIM_RUN_EFFECT(name, execute_stx128)
#define GPUSIM_RUN_kVector(name)                                         \
  case Op::name:                                                         \
    if constexpr (Code::kHasVectors) {                                   \
      if (!execute_vector(u, ctx, memory, core, stop)) return Outcome::kFault; \
    }                                                                    \
    break;
#define GPUSIM_RUN_kAlign(name)                          \
  case Op::name:                                         \
    if (((GPUSIM_GET_A + u.imm) & (u.imm16() - 1u)) == 0) break; \
    stop = {Fault::kAlignment, GPUSIM_GET_A + u.imm};        \
    return Outcome::kFault;
#define GPUSIM_RUN_kFence(name) \
  case Op::name:                \
    fence_all();                \
    break;
#define GPUSIM_RUN_kNote(name)                                           \
  case Op::name:                                                         \
    memory.note(core, u.aux == kNoteStamp ? memory.next_stamp()          \
                                          : note_word(u, GPUSIM_GET_A, GPUSIM_GET_B)); \
    break;
// Many cores have to be there: who runs warps executes these rows.
#define GPUSIM_RUN_OF_WARPS(name)        \
  case Op::name:                         \
    stop = {Fault::kUndefined, 0};       \
    return Outcome::kFault;
#define GPUSIM_RUN_kWarp GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kWarpSync GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kCtaSync GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kCtaReduce GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kEnd GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kBrAB(name) \
  case Op::name:               \
    return sem::name<SD>(GPUSIM_GET_A, GPUSIM_GET_B) ? Outcome::kTaken : Outcome::kNotTaken;
#define GPUSIM_RUN_kBrAI(name) \
  case Op::name:               \
    return sem::name<SD>(GPUSIM_GET_A, u) ? Outcome::kTaken : Outcome::kNotTaken;
#define GPUSIM_RUN_kJmp(name) \
  case Op::name:              \
    return Outcome::kJump;
#define GPUSIM_RUN_kLink(name) \
  case Op::name:               \
    return Outcome::kLink;
#define GPUSIM_RUN_kJmpReg(name) \
  case Op::name:                 \
    return Outcome::kJumpReg;
#define GPUSIM_RUN_kGiveWay(name) \
  case Op::name:                  \
    if (u.aux != static_cast<uint8_t>(Turn::kSignalEvent)) return Outcome::kGiveWay; \
    memory.signal_event();        \
    return Outcome::kSignalled;
#define GPUSIM_RUN_kService(name) \
  case Op::name:                  \
    return Outcome::kService;
#define GPUSIM_RUN_kTrap(name)                    \
  case Op::name:                                  \
    stop = {static_cast<Fault>(u.aux), 0};        \
    return Outcome::kFault;
#define GPUSIM_UOP(name, shape, fields, traits) GPUSIM_RUN_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
#undef GPUSIM_GET_A
#undef GPUSIM_GET_B
#undef GPUSIM_GET_C
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
  static constexpr bool kGoesOn = false, kHasVectors = true;
  const Uop& u;
  GPUSIM_HD_INLINE const Uop& next() const { return u; }
};

template <class Ctx, class Memory>
GPUSIM_HD_INLINE Outcome execute(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                 StopInfo& stop) {
  OneMicroOp only{u};
  return execute_all(only, ctx, memory, core, stop);
}

}  // namespace gpusim
