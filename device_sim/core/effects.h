// Effects of micro-ops on memory, for one core, and what stops a core. Usable with any context that
// has `uint64_t get(Slot) const` and `void set(Slot, uint64_t)`.
#pragma once
#include "device_sim/uir/access.h"
#include "device_sim/core/atomics.h"
#include "device_sim/uir/journal.h"
#include "device_sim/core/memory_view.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

// Set where a core stops, else of no value: most micro-ops leave it alone.
struct StopInfo {
  Fault fault;
  uint64_t address;  // of a faulting access
};

// A Memory that has a short way for most accesses: is_in_line() says for which, load_in_line() and
// store_in_line() do them.
template <class Memory>
concept HasInLine = Memory::kHasInLine;
// One that has a yet shorter way, for accesses of which is_open() is true.
template <class Memory>
concept HasOpenPart = Memory::kHasOpenPart;

// Each returns false and fills `stop` on a fault. What is done in line ends on a way of its own:
// compilers for GPUs would have each access test afterwards which way it came.
template <Op op, class Ctx, class Memory>
GPUSIM_HD_INLINE bool execute_load(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                   StopInfo& stop) {
  using A = Access<op>;
  using Type = typename A::Type;
  const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : ctx.get(u.b);
  const uint64_t address = access_address<A::kMode>(ctx.get(u.a), index, u.imm);
  Type value;
  if constexpr (HasOpenPart<Memory>)
    if (memory.template is_open<Type>(address)) {
      ctx.set(u.d, extend_loaded<A::kExtend>(memory.template load_in_line<Type>(address)));
      return true;
    }
  if constexpr (HasInLine<Memory>)
    if (memory.template is_in_line<Type>(address, kRead)) {
      ctx.set(u.d, extend_loaded<A::kExtend>(memory.template load_in_line<Type>(address)));
      return true;
    }
  if (!memory.load(core, address, &value)) {
    stop = {Fault::kLoadAccess, address};
    return false;
  }
  ctx.set(u.d, extend_loaded<A::kExtend>(value));
  return true;
}

template <Op op, class Ctx, class Memory>
GPUSIM_HD_INLINE bool execute_store(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                    StopInfo& stop) {
  using A = Access<op>;
  using Type = typename A::Type;
  const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : ctx.get(u.b);
  const uint64_t address = access_address<A::kMode>(ctx.get(u.a), index, u.imm);
  const auto value = static_cast<Type>(ctx.get(u.d));
  if constexpr (HasOpenPart<Memory>)
    if (memory.template is_open<Type>(address)) {
      memory.store_in_line(address, value);
      return true;
    }
  if constexpr (HasInLine<Memory>)
    if (memory.template is_in_line<Type>(address, kWrite)) {
      memory.store_in_line(address, value);
      return true;
    }
  if (memory.store(core, address, value)) return true;
  stop = {Fault::kStoreAccess, address};
  return false;
}

// The aligned bytes that an atomic access may read and write, or null with `stop` filled.
template <class Memory>
GPUSIM_HD_INLINE uint8_t* atomic_target(const Memory& memory, uint32_t core, uint64_t address,
                                        uint32_t size, StopInfo& stop) {
  if (address & (size - 1)) {
    stop = {Fault::kAlignment, address};
    return nullptr;
  }
  uint8_t* p = memory.byte(core, address, kRead | kWrite);
  if (!p) stop = {Fault::kStoreAccess, address};
  return p;
}

template <Op op, class Ctx, class Memory>
GPUSIM_HD_INLINE bool execute_amo(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                  StopInfo& stop) {
  const uint32_t log2_size = kHasFloatWord<op> ? u.aux & 3u : u.aux;
  uint8_t* p = atomic_target(memory, core, ctx.get(u.a), 1u << log2_size, stop);
  if (!p) return false;
  ctx.set(u.d, amo<op>(p, ctx.get(u.b), u.aux));
  return true;
}

template <class Ctx, class Memory>
GPUSIM_HD_INLINE bool execute_cas(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                                  StopInfo& stop) {
  uint8_t* p = atomic_target(memory, core, ctx.get(u.a), 1u << u.aux, stop);
  if (!p) return false;
  ctx.set(u.d, cas_any(p, ctx.get(u.c), ctx.get(u.b), u.aux));
  return true;
}

template <class Ctx, class Memory>
GPUSIM_HD bool execute_cas128(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
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

template <class Ctx, class Memory>
GPUSIM_HD_INLINE bool execute_stx(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
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

template <class Ctx, class Memory>
GPUSIM_HD bool execute_stx128(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
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
