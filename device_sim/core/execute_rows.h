// What each micro-op does to one core, as the text of a function: a sequence of GPUSIM_ROW(name)
// followed by a block, which ends in `break` where the core goes on, or returns an Outcome. Who
// includes it defines GPUSIM_ROW, and has `u`, `ctx`, `memory`, `core`, `stop` and, as types, `SD`
// and `Code` (execute.h). No include guard: it is included by each such function.
#define GPUSIM_RUN_VALUE(name, ...)           \
  GPUSIM_ROW(name) {                          \
    ctx.set(u.d, sem::name<SD>(__VA_ARGS__)); \
    break;                                    \
  }
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
  GPUSIM_ROW(name) {                                           \
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
#define GPUSIM_RUN_EFFECT(name, call)                                \
  GPUSIM_ROW(name) {                                                 \
    if constexpr (Code::kInStep) {                                   \
      return Outcome::kMeets;                                        \
    } else {                                                         \
      if (!call(u, ctx, memory, core, stop)) return Outcome::kFault; \
      break;                                                         \
    }                                                                \
  }
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
#define GPUSIM_RUN_kVector(name)                                               \
  GPUSIM_ROW(name) {                                                           \
    if constexpr (Code::kHasVectors) {                                         \
      if (!execute_vector(u, ctx, memory, core, stop)) return Outcome::kFault; \
    }                                                                          \
    break;                                                                     \
  }
#define GPUSIM_RUN_kAlign(name)                                  \
  GPUSIM_ROW(name) {                                             \
    if (((GPUSIM_GET_A + u.imm) & (u.imm16() - 1u)) == 0) break; \
    stop = {Fault::kAlignment, GPUSIM_GET_A + u.imm};            \
    return Outcome::kFault;                                      \
  }
#define GPUSIM_RUN_kFence(name) \
  GPUSIM_ROW(name) {            \
    fence_all();                \
    break;                      \
  }
#define GPUSIM_RUN_kNote(name)                                                           \
  GPUSIM_ROW(name) {                                                                     \
    memory.note(core, u.aux == kNoteStamp   ? memory.next_stamp()                        \
                      : u.aux == kNoteClock ? clock_of(ctx, memory)                      \
                                            : note_word(u, GPUSIM_GET_A, GPUSIM_GET_B)); \
    break;                                                                               \
  }
// Many cores have to be there: who runs warps executes these rows.
#define GPUSIM_RUN_OF_WARPS(name)                        \
  GPUSIM_ROW(name) {                                     \
    if constexpr (Code::kInStep) return Outcome::kMeets; \
    stop = {Fault::kUndefined, 0};                       \
    return Outcome::kFault;                              \
  }
#define GPUSIM_RUN_kWarp GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kWarpSync GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kCtaSync GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kCtaReduce GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kEnd GPUSIM_RUN_OF_WARPS
#define GPUSIM_RUN_kBrAB(name)                                                               \
  GPUSIM_ROW(name) {                                                                         \
    return sem::name<SD>(GPUSIM_GET_A, GPUSIM_GET_B) ? Outcome::kTaken : Outcome::kNotTaken; \
  }
#define GPUSIM_RUN_kBrAI(name) \
  GPUSIM_ROW(name) { return sem::name<SD>(GPUSIM_GET_A, u) ? Outcome::kTaken : Outcome::kNotTaken; }
#define GPUSIM_RUN_kJmp(name) \
  GPUSIM_ROW(name) { return Outcome::kJump; }
#define GPUSIM_RUN_kLink(name) \
  GPUSIM_ROW(name) { return Outcome::kLink; }
#define GPUSIM_RUN_kJmpReg(name) \
  GPUSIM_ROW(name) { return Outcome::kJumpReg; }
#define GPUSIM_RUN_kGiveWay(name)                                                    \
  GPUSIM_ROW(name) {                                                                 \
    if (u.aux != static_cast<uint8_t>(Turn::kSignalEvent)) return Outcome::kGiveWay; \
    memory.signal_event();                                                           \
    return Outcome::kSignalled;                                                      \
  }
#define GPUSIM_RUN_kService(name) \
  GPUSIM_ROW(name) { return Outcome::kService; }
#define GPUSIM_RUN_kTrap(name)             \
  GPUSIM_ROW(name) {                       \
    stop = {static_cast<Fault>(u.aux), 0}; \
    return Outcome::kFault;                \
  }
#define GPUSIM_UOP(name, shape, fields, traits) GPUSIM_RUN_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
#undef GPUSIM_GET_A
#undef GPUSIM_GET_B
#undef GPUSIM_GET_C
#undef GPUSIM_RUN_VALUE
#undef GPUSIM_RUN_kDI
#undef GPUSIM_RUN_kDA
#undef GPUSIM_RUN_kDAI
#undef GPUSIM_RUN_kDAB
#undef GPUSIM_RUN_kDABI
#undef GPUSIM_RUN_kDABC
#undef GPUSIM_RUN_kDABCI
#undef GPUSIM_RUN_kSel
#undef GPUSIM_RUN_kSelCmp
#undef GPUSIM_RUN_kSelCmpI
#undef GPUSIM_RUN_FP
#undef GPUSIM_RUN_kFA
#undef GPUSIM_RUN_kFAB
#undef GPUSIM_RUN_kFABC
#undef GPUSIM_RUN_kGA
#undef GPUSIM_RUN_kGAB
#undef GPUSIM_RUN_kGABC
#undef GPUSIM_RUN_EFFECT
#undef GPUSIM_RUN_kLdI
#undef GPUSIM_RUN_kLdX
#undef GPUSIM_RUN_kLdW
#undef GPUSIM_RUN_kStI
#undef GPUSIM_RUN_kStX
#undef GPUSIM_RUN_kStW
#undef GPUSIM_RUN_kAmo
#undef GPUSIM_RUN_kCas
#undef GPUSIM_RUN_kCas128
#undef GPUSIM_RUN_kStx
#undef GPUSIM_RUN_kStx128
#undef GPUSIM_RUN_kVector
#undef GPUSIM_RUN_kAlign
#undef GPUSIM_RUN_kFence
#undef GPUSIM_RUN_kNote
#undef GPUSIM_RUN_OF_WARPS
#undef GPUSIM_RUN_kWarp
#undef GPUSIM_RUN_kWarpSync
#undef GPUSIM_RUN_kCtaSync
#undef GPUSIM_RUN_kCtaReduce
#undef GPUSIM_RUN_kEnd
#undef GPUSIM_RUN_kBrAB
#undef GPUSIM_RUN_kBrAI
#undef GPUSIM_RUN_kJmp
#undef GPUSIM_RUN_kLink
#undef GPUSIM_RUN_kJmpReg
#undef GPUSIM_RUN_kGiveWay
#undef GPUSIM_RUN_kService
#undef GPUSIM_RUN_kTrap
#undef GPUSIM_ROW
