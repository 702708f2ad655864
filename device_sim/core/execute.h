// One micro-op for one core. The scalar backend and every CUDA thread run exactly this.
#pragma once
#include "device_sim/core/access.h"
#include "device_sim/core/atomics.h"
#include "device_sim/core/memory_view.h"
#include "device_sim/uir/semantics.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

enum class Outcome : uint8_t {
  kNext,
  kFault,
  // Ends of blocks:
  kTaken,
  kNotTaken,
  kLink,
  kJumpReg,
  kGiveWay,
  kService,
};

struct StopInfo {
  Fault fault = Fault::kNone;
  uint64_t address = 0;  // of a faulting access, or where jmp_reg goes
};

// Effects on memory, for any core context. Each returns false and fills `stop` on a fault.
template <Op op, class Ctx>
GPUSIM_HD_INLINE bool execute_load(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                   StopInfo& stop) {
  using A = Access<op>;
  const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : ctx.get(u.b);
  const uint64_t address = access_address<A::kMode>(ctx.get(u.a), index, u.imm);
  typename A::Type value;
  if (!memory.load(core, address, &value)) {
    stop = {Fault::kLoadAccess, address};
    return false;
  }
  ctx.set(u.d, extend_loaded<A::kExtend>(value));
  return true;
}

template <Op op, class Ctx>
GPUSIM_HD_INLINE bool execute_store(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                    StopInfo& stop) {
  using A = Access<op>;
  const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : ctx.get(u.b);
  const uint64_t address = access_address<A::kMode>(ctx.get(u.a), index, u.imm);
  if (memory.store(core, address, static_cast<typename A::Type>(ctx.get(u.d)))) return true;
  stop = {Fault::kStoreAccess, address};
  return false;
}

// The aligned bytes that an atomic access may read and write, or null with `stop` filled.
GPUSIM_HD_INLINE uint8_t* atomic_target(const MemoryView& memory, uint32_t core, uint64_t address,
                                        uint32_t size, StopInfo& stop) {
  if (address & (size - 1)) {
    stop = {Fault::kAlignment, address};
    return nullptr;
  }
  uint8_t* p = memory.byte(core, address, kRead | kWrite);
  if (!p) stop = {Fault::kStoreAccess, address};
  return p;
}

template <Op op, class Ctx>
GPUSIM_HD_INLINE bool execute_amo(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                  StopInfo& stop) {
  uint8_t* p = atomic_target(memory, core, ctx.get(u.a), 1u << u.aux, stop);
  if (!p) return false;
  ctx.set(u.d, amo<op>(p, ctx.get(u.b), u.aux));
  return true;
}

template <class Ctx>
GPUSIM_HD_INLINE bool execute_cas(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                  StopInfo& stop) {
  uint8_t* p = atomic_target(memory, core, ctx.get(u.a), 1u << u.aux, stop);
  if (!p) return false;
  ctx.set(u.d, cas_any(p, ctx.get(u.c), ctx.get(u.b), u.aux));
  return true;
}

template <class Ctx>
GPUSIM_HD bool execute_cas128(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                              StopInfo& stop) {
  const uint64_t address = ctx.get(u.a);
  uint8_t* p0 = atomic_target(memory, core, address, 16, stop);
  if (!p0) return false;
  uint8_t* p1 = memory.byte(core, address + 8, kRead | kWrite);
  uint64_t expected[2] = {ctx.get(u.d), ctx.get(static_cast<Slot>(u.d + 1))};
  const uint64_t desired[2] = {ctx.get(u.b), ctx.get(static_cast<Slot>(u.b + 1))};
  cas_pair(memory.pair_lock, p0, p1, expected, desired);
  ctx.set(u.d, expected[0]);
  ctx.set(static_cast<Slot>(u.d + 1), expected[1]);
  return true;
}

template <class Ctx>
GPUSIM_HD_INLINE bool execute_stx(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                  StopInfo& stop) {
  const uint64_t address = ctx.get(u.a);
  uint8_t* p = atomic_target(memory, core, address, 1u << u.aux, stop);
  if (!p) return false;
  uint64_t failed = 1;
  if (address == ctx.get(u.c)) {
    const uint64_t expected = ctx.get(static_cast<Slot>(u.c + 1)) & size_mask(u.aux);
    failed = cas_any(p, expected, ctx.get(u.b), u.aux) != expected;
  }
  ctx.set(u.c, ~uint64_t{0});
  ctx.set(u.d, failed);
  return true;
}

template <class Ctx>
GPUSIM_HD bool execute_stx128(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                              StopInfo& stop) {
  const uint64_t address = ctx.get(u.a);
  uint8_t* p0 = atomic_target(memory, core, address, 16, stop);
  if (!p0) return false;
  uint64_t failed = 1;
  if (address == ctx.get(u.c)) {
    uint8_t* p1 = memory.byte(core, address + 8, kRead | kWrite);
    uint64_t expected[2] = {ctx.get(static_cast<Slot>(u.c + 1)), ctx.get(static_cast<Slot>(u.c + 2))};
    const uint64_t desired[2] = {ctx.get(u.b), ctx.get(static_cast<Slot>(u.b + 1))};
    failed = !cas_pair(memory.pair_lock, p0, p1, expected, desired);
  }
  ctx.set(u.c, ~uint64_t{0});
  ctx.set(u.d, failed);
  return true;
}

// Ctx: `uint64_t get(Slot) const`, `void set(Slot, uint64_t)`.
template <class Ctx>
GPUSIM_HD_INLINE Outcome execute(const Uop& u, Ctx& ctx, const MemoryView& memory, uint32_t core,
                                 StopInfo& stop) {
  using SD = sem::ScalarDomain;
  switch (u.op) {
#define GPUSIM_RUN_VALUE(name, ...)            \
  case Op::name:                               \
    ctx.set(u.d, sem::name<SD>(__VA_ARGS__));  \
    return Outcome::kNext;
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
#define GPUSIM_RUN_FP(name, ...)                               \
  case Op::name: {                                             \
    const Slot state = static_cast<Slot>(u.imm16);             \
    uint64_t fp = ctx.get(state);                              \
    const uint64_t result = sem::name<SD>(__VA_ARGS__, fp, u); \
    ctx.set(state, fp);                                        \
    ctx.set(u.d, result);                                      \
    return Outcome::kNext;                                     \
  }
#define GPUSIM_RUN_kFA(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A)
#define GPUSIM_RUN_kFAB(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A, GPUSIM_GET_B)
#define GPUSIM_RUN_kFABC(name) GPUSIM_RUN_FP(name, GPUSIM_GET_A, GPUSIM_GET_B, GPUSIM_GET_C)
#define GPUSIM_RUN_kGA GPUSIM_RUN_kFA
#define GPUSIM_RUN_kGAB GPUSIM_RUN_kFAB
#define GPUSIM_RUN_kGABC GPUSIM_RUN_kFABC
#define GPUSIM_RUN_EFFECT(name, call) \
  case Op::name:                      \
    return call(u, ctx, memory, core, stop) ? Outcome::kNext : Outcome::kFault;
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
#define GPUSIM_RUN_kAlign(name)                          \
  case Op::name:                                         \
    if (((GPUSIM_GET_A + u.imm) & (u.imm16 - 1u)) == 0) return Outcome::kNext; \
    stop = {Fault::kAlignment, GPUSIM_GET_A + u.imm};        \
    return Outcome::kFault;
#define GPUSIM_RUN_kFence(name) \
  case Op::name:                \
    PairLock::fence();          \
    return Outcome::kNext;
#define GPUSIM_RUN_kBrAB(name) \
  case Op::name:               \
    return sem::name<SD>(GPUSIM_GET_A, GPUSIM_GET_B) ? Outcome::kTaken : Outcome::kNotTaken;
#define GPUSIM_RUN_kBrAI(name) \
  case Op::name:               \
    return sem::name<SD>(GPUSIM_GET_A, u) ? Outcome::kTaken : Outcome::kNotTaken;
#define GPUSIM_RUN_kJmp(name) \
  case Op::name:              \
    return Outcome::kTaken;
#define GPUSIM_RUN_kLink(name) \
  case Op::name:               \
    return Outcome::kLink;
#define GPUSIM_RUN_kJmpReg(name) \
  case Op::name:                 \
    stop.address = GPUSIM_GET_A;     \
    return Outcome::kJumpReg;
#define GPUSIM_RUN_kGiveWay(name) \
  case Op::name:                  \
    return Outcome::kGiveWay;
#define GPUSIM_RUN_kService(name) \
  case Op::name:                  \
    return Outcome::kService;
#define GPUSIM_RUN_kTrap(name)                    \
  case Op::name:                                  \
    stop = {static_cast<Fault>(u.aux), 0};        \
    return Outcome::kFault;
#define GPUSIM_UOP(name, shape) GPUSIM_RUN_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
#undef GPUSIM_GET_A
#undef GPUSIM_GET_B
#undef GPUSIM_GET_C
  }
  stop = {Fault::kUndefined, 0};
  return Outcome::kFault;
}

// Where a jump to a guest address continues, or kNoUop.
struct CodeView {
  const Uop* uops = nullptr;
  const uint32_t* uop_at = nullptr;
  uint64_t text_base = 0;
  uint64_t text_units = 0;
  uint32_t pc_shift = 2;

  GPUSIM_HD_INLINE uint32_t find(uint64_t pc) const {
    const uint64_t offset = pc - text_base;
    const uint64_t unit = offset >> pc_shift;
    if (unit >= text_units || (offset & ((uint64_t{1} << pc_shift) - 1))) return kNoUop;
    return uop_at[unit];
  }
};

}  // namespace gpusim
