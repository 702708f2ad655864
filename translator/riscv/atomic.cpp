// Load-reserved, store-conditional and atomic memory operations (A and Zacas, unprivileged manual,
// chapter 8 and "Zacas").
//
// A load-reserved leaves the address and the data in the monitor's slots; the store-conditional is
// a compare-and-swap against them (it succeeds after an ABA change, as under other emulators). All
// accesses must be naturally aligned.
//
// A release has a fence behind it, too, as an acquire has: a later acquire must not pass it (RCsc
// annotations; chapter 17, preserved program order, rule 7).
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {

bool Visitor::LR(bool q, bool l, Reg n, bool y, Reg d) {
  set_class(InsnClass::kParallelism);
  if (l) b_.fence();
  b_.check_align(x_src(n), 0, y ? 8 : 4);
  if (y) {
    b_.ld64(kMonitorLow, x_src(n), 0);
  } else {
    b_.ldu32(kMonitorLow, x_src(n), 0);
  }
  b_.mov(kMonitor, x_src(n));
  if (y) {
    b_.mov(x_dst(d), kMonitorLow);
  } else {
    write_word(x_dst(d), kMonitorLow);
  }
  if (q) b_.fence();
  return true;
}

bool Visitor::SC(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  set_class(InsnClass::kParallelism);
  if (l) b_.fence();
  b_.stx(x_dst(d), x_src(n), x_src(m), kMonitor, y ? 3 : 2);
  if (q || l) b_.fence();
  return true;
}

bool Visitor::atomic(MicroOp op, bool q, bool l, Slot operand, Reg n, bool y, Reg d) {
  set_class(InsnClass::kParallelism);
  if (l) b_.fence();
  const Slot old = y ? x_dst(d) : b_.temp();
  b_.emit(op, old, x_src(n), operand, 0, 0, y ? 3 : 2);
  if (!y) write_word(x_dst(d), old);
  if (q || l) b_.fence();
  return true;
}
bool Visitor::AMOSWAP(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_swp, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOADD(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_add, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOXOR(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_xor, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOAND(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  const Slot cleared = b_.temp();
  b_.orn64(cleared, kZero, x_src(m));
  return atomic(MicroOp::amo_clr, q, l, cleared, n, y, d);
}
bool Visitor::AMOOR(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_or, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOMIN(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_smin, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOMAX(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_smax, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOMINU(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_umin, q, l, x_src(m), n, y, d);
}
bool Visitor::AMOMAXU(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  return atomic(MicroOp::amo_umax, q, l, x_src(m), n, y, d);
}

// rd is compared and receives the old value; rs2 is what is stored.
bool Visitor::AMOCAS(bool q, bool l, Reg m, Reg n, bool y, Reg d) {
  set_class(InsnClass::kParallelism);
  if (l) b_.fence();
  const Slot old = y ? x_dst(d) : b_.temp();
  b_.cas(old, x_src(n), x_src(m), x_src(d), y ? 3 : 2);
  if (!y) write_word(x_dst(d), old);
  if (q || l) b_.fence();
  return true;
}

Slot Visitor::pair(Reg even) {
  if (even != 0) return x_src(even);
  const Slot zeroes = b_.temp_run(2);
  b_.konst(zeroes, 0);
  b_.konst(static_cast<Slot>(zeroes + 1), 0);
  return zeroes;
}
bool Visitor::AMOCAS_Q(bool q, bool l, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kParallelism);
  if (l) b_.fence();
  const Slot desired = pair(m), expected = pair(d);
  b_.cas128(expected, x_src(n), desired);
  if (q || l) b_.fence();
  return true;
}

}  // namespace gpusim::riscv
