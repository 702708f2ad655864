// What micro-ops make of values some of whose bits are undefined.
#pragma once
#include <concepts>

#include "device_sim/uir/uop.h"
#include "host/uninitialised/domain.h"

namespace gpusim::host::uninitialised {

// The slots of a core, before the micro-op.
struct Operands {
  const uint64_t* values;
  const uint64_t* undefined;
  Bits get(Slot s) const { return {values[s], undefined[s]}; }
};

// Of a row that makes a value: what becomes of slot d. The floating-point state that some rows read
// and update always counts as defined.
Bits value_of(const Uop& u, const Operands& in);
// Of a conditional branch: whether it is taken.
Truth branch_of(const Uop& u, const Operands& in);
// What an atomic operation stores, of `size_bytes`, where memory was `old`.
Bits stored_by_atomic(const Uop& u, Bits old, Bits operand);

// Whether the result is the same whatever the operand is: x ^ x.
constexpr bool is_constant_idiom(const Uop& u) {
  if (u.a != u.b) return false;
  switch (u.op) {
    case Op::xor64:
    case Op::xor32:
    case Op::sub64:
    case Op::sub32:
    case Op::subw:
    case Op::bic64:
      return true;
    default:
      return false;
  }
}

}  // namespace gpusim::host::uninitialised
