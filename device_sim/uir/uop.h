// The micro-op: 16 bytes, decoded by one table look-up.
#pragma once
#include <cstdint>

#include "device_sim/uir/fields.h"
#include "device_sim/uir/hd.h"
#include "device_sim/uir/shape.h"
#include "device_sim/uir/traits.h"

namespace gpusim {

enum class Op : uint16_t {
#define GPUSIM_UOP(name, shape, fields, traits) name,
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
};

inline constexpr int kOpCount = 0
#define GPUSIM_UOP(name, shape, fields, traits) +1
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
    ;
static_assert(kOpCount < 0xffff, "a micro-op's number must fit 16 bits");

// Index of a 64-bit context slot.
using Slot = uint8_t;

struct alignas(16) Uop {
  Op op{};
  Slot d = 0, a = 0, b = 0, c = 0;
  Slot e = 0;       // a fifth operand, the floating-point state, or a helper's number
  uint8_t aux = 0;  // what kind of its operation: an element size, a format, a comparison
  uint64_t imm = 0;

  // Rows with a longer immediate use neither e nor aux.
  GPUSIM_HD constexpr uint16_t imm16() const { return static_cast<uint16_t>(e | aux << 8); }
  constexpr void set_imm16(uint16_t value) {
    e = static_cast<Slot>(value);
    aux = static_cast<uint8_t>(value >> 8);
  }
  constexpr Uop with_imm16(uint16_t value) const {
    Uop u = *this;
    u.set_imm16(value);
    return u;
  }

  // Ends of blocks keep the block's number and the target's index in `imm`.
  GPUSIM_HD constexpr uint32_t target() const { return static_cast<uint32_t>(imm); }
  GPUSIM_HD constexpr uint32_t block() const { return static_cast<uint32_t>(imm >> 32); }
  static constexpr uint64_t pack_target(uint32_t block, uint32_t target) {
    return uint64_t{block} << 32 | target;
  }
  bool operator==(const Uop&) const = default;
};
static_assert(sizeof(Uop) == 16);

inline constexpr uint32_t kNoBlock = 0xffffffff;
inline constexpr uint32_t kNoUop = 0xffffffff;

// What an indirect jump means for the call depth; a hint for reconvergence, never for semantics.
enum class JumpHint : uint8_t { kNone, kCall, kReturn };

// What `give_way` means: let others run; wait for an event, the monitor's among them; signal an event
// to all cores, without giving way.
enum class Turn : uint8_t { kYield, kWaitForEvent, kSignalEvent };

// What the monitor's slot holds when no address is marked: nothing, or an event for this core alone.
inline constexpr uint64_t kNoMonitor = ~uint64_t{0}, kLocalEvent = ~uint64_t{1};

// Why `service` stops a core. kTimeRelease, kTimeAcquire: what the core did so far comes before, in
// simulated time, what cores do after they acquire the same; the first two registers for arguments
// name it: an address and a number. Only in programs that were translated so.
enum class Service : uint8_t {
  kSyscall,
  kReadCounter,
  kReadCounterFrequency,
  kTimeRelease,
  kTimeAcquire,
};

// Why a core cannot go on. The number of the Linux signal that a user process would get is
// fault_signal().
enum class Fault : uint8_t {
  kNone,
  kUndefined,       // no such instruction, or one that the translator does not know
  kBreakpoint,      // brk and the like
  kLoadAccess,      // no readable memory at the address
  kStoreAccess,     // no writable memory at the address
  kAlignment,       // atomic or exclusive access off its natural alignment
  kFetchAccess,     // jump to memory that holds no code
  kFetchAlignment,  // jump to an address that no instruction can have
  kModifiedCode,    // jump into code that was written after its translation
  kBarrier,         // no such barrier of the CTA, or no such count of threads
  kDeadlock,        // waits for lanes of its warp or CTA that wait for others
};
constexpr int fault_signal(Fault f) {
  switch (f) {
    case Fault::kUndefined: return 4;                          // SIGILL
    case Fault::kBreakpoint: return 5;                         // SIGTRAP
    case Fault::kAlignment:
    case Fault::kFetchAlignment: return 7;                     // SIGBUS
    default: return 11;                                        // SIGSEGV
  }
}

struct OpInfo {
  const char* name;
  Shape shape;
  Fields fields;
  Traits traits;
};

namespace traits {
inline constexpr OpInfo kRows[kOpCount] = {
#define GPUSIM_UOP(name, shape, fields, traits) {#name, Shape::shape, Fields::fields, traits},
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
};
}  // namespace traits
inline constexpr const auto& kOpInfo = traits::kRows;
constexpr const OpInfo& op_info(Op op) { return kOpInfo[static_cast<int>(op)]; }
constexpr bool has_trait(Op op, Traits traits) { return (op_info(op).traits & traits) == traits; }

}  // namespace gpusim
