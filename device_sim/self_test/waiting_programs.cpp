#include "device_sim/self_test/waiting_programs.h"

#include "device_sim/self_test/assembler.h"

namespace gpusim::self_test {
namespace {

// The core saw in `seen` what lay at the address in `place`.
void wait(Assembler& a, How how, Slot place, Slot seen, uint32_t again) {
  if (how == How::kSpin) {
    a.end(Op::jmp, 0, 0, 0, again);
    return;
  }
  if (how == How::kWatch) {
    a.op(Op::mov, kMonitor, place);
    a.op(Op::mov, kMonitorData, seen);
  } else {
    a.konst(kMonitor, kNoMonitor);
  }
  const Turn turn = how == How::kYield ? Turn::kYield : Turn::kWaitForEvent;
  a.end(Op::give_way, kMonitor, 0, 0, again, static_cast<uint8_t>(turn));
}

// After a store that others may wait for.
void tell(Assembler& a, How how) {
  if (how == How::kEvent)
    a.end(Op::give_way, kMonitor, 0, 0, a.next(), static_cast<uint8_t>(Turn::kSignalEvent));
}

void repeat(Assembler& a, uint32_t start) {
  a.op(Op::addi64, kRounds, kRounds, 0, 0, ~uint64_t{0});
  a.end(Op::bri_ne64, kRounds, 0, 0, start);
}

void increment_count(Assembler& a) {
  a.konst(kA, kCount);
  a.op(Op::ld64, kB, kA);
  a.op(Op::addi64, kB, kB, 0, 0, 1);
  a.op(Op::st64, kB, kA);
}

}  // namespace

Module ticket_lock(How how) {
  Assembler a;
  a.konst(kOne, 1);
  const uint32_t start = a.label();
  a.konst(kA, kNext);
  a.op(Op::amo_add, kT, kA, kOne, 0, 0, 3);
  a.konst(kC, kServing);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t got = a.end(Op::br_eq64, kB, kT, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(got, a.label());
  increment_count(a);
  a.op(Op::addi64, kT, kT, 0, 0, 1);
  a.op(Op::st64, kT, kC);
  tell(a, how);
  repeat(a, start);
  return a.take(kWaitingSlots);
}

Module swap_lock(How how) {
  Assembler a;
  a.konst(kOne, 1);
  a.konst(kC, kNext);
  const uint32_t start = a.label();
  a.op(Op::amo_swp, kB, kC, kOne, 0, 0, 2);
  const uint32_t got = a.end(Op::bri_eq64, kB, 0, 0, 0);
  wait(a, how, kC, kB, start);
  a.aim(got, a.label());
  increment_count(a);
  a.konst(kB, 0);
  a.op(Op::st32, kB, kC);
  tell(a, how);
  repeat(a, start);
  return a.take(kWaitingSlots);
}

Module exclusive_counter(How how) {
  Assembler a;
  a.konst(kA, kCount);
  const uint32_t start = a.label();
  a.op(Op::mov, kMark, kA);
  a.op(Op::ld64, kSeen, kA);
  a.op(Op::addi64, kB, kSeen, 0, 0, 1);
  a.op(Op::stx, kT, kA, kB, kMark, 0, 3);
  const uint32_t done = a.end(Op::bri_eq64, kT, 0, 0, 0);
  wait(a, how, kA, kSeen, start);
  a.aim(done, a.label());
  tell(a, how);
  repeat(a, start);
  return a.take(kWaitingSlots);
}

Module barrier(How how) {
  Assembler a;
  a.konst(kOne, 1);
  const uint32_t start = a.label();
  a.konst(kA, kCount);
  a.op(Op::amo_add, kB, kA, kOne, 0, 0, 3);
  a.konst(kC, kGeneration);
  a.op(Op::ld64, kT, kC);
  a.konst(kA, kArrived);
  a.op(Op::amo_add, kB, kA, kOne, 0, 0, 3);
  a.op(Op::sub64, kB, kB, kLast);
  const uint32_t last = a.end(Op::bri_eq64, kB, 0, 0, 0);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t open = a.end(Op::br_ne64, kB, kT, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(last, a.label());
  a.konst(kB, 0);
  a.op(Op::st64, kB, kA);
  a.op(Op::addi64, kT, kT, 0, 0, 1);
  a.op(Op::st64, kT, kC);
  tell(a, how);
  a.aim(open, a.label());
  // All cores of this round have counted: count >= (rounds so far) * cores.
  a.konst(kA, kCount);
  a.op(Op::ld64, kB, kA);
  a.op(Op::add64, kSeen, kSeen, kCores);
  const uint32_t fine = a.end(Op::br_geu64, kB, kSeen, 0, 0);
  a.end(Op::trap, 0, 0, 0, 0, static_cast<uint8_t>(Fault::kUndefined));
  a.aim(fine, a.label());
  repeat(a, start);
  return a.take(kWaitingSlots);
}

Module relay(How how) {
  Assembler a;
  a.konst(kC, kCount);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t mine = a.end(Op::br_eq64, kB, kCoreId, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(mine, a.label());
  a.op(Op::addi64, kB, kB, 0, 0, 1);
  a.op(Op::st64, kB, kC);
  tell(a, how);
  return a.take(kWaitingSlots);
}

}  // namespace gpusim::self_test
