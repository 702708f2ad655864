// Exceptions, hints, barriers, system registers and instructions, as user code under Linux sees
// them (C4.1.87, D19; Documentation/arm64/cpu-feature-registers.rst of Linux).
#include "translator/a64/cpus.h"
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

// op0:op1:CRn:CRm:op2 as the manual lists registers.
constexpr uint32_t key(uint32_t op0, uint32_t op1, uint32_t CRn, uint32_t CRm, uint32_t op2) {
  return op0 << 14 | op1 << 11 | CRn << 7 | CRm << 3 | op2;
}

enum SystemRegister : uint32_t {
  kCtrEl0 = key(3, 3, 0, 0, 1),
  kDczidEl0 = key(3, 3, 0, 0, 7),
  kRndr = key(3, 3, 2, 4, 0),
  kRndrrs = key(3, 3, 2, 4, 1),
  kNzcvReg = key(3, 3, 4, 2, 0),
  kDit = key(3, 3, 4, 2, 5),
  kSsbs = key(3, 3, 4, 2, 6),
  kFpcr = key(3, 3, 4, 4, 0),
  kFpsr = key(3, 3, 4, 4, 1),
  kPmuserenrEl0 = key(3, 3, 9, 14, 0),
  kTpidrEl0 = key(3, 3, 13, 0, 2),
  kTpidrroEl0 = key(3, 3, 13, 0, 3),
  kCntfrqEl0 = key(3, 3, 14, 0, 0),
  kCntvctEl0 = key(3, 3, 14, 0, 2),
  kCntvctssEl0 = key(3, 3, 14, 0, 6),
};

enum SystemInstruction : uint32_t {
  kIcIvau = key(1, 3, 7, 5, 1),
  kDcZva = key(1, 3, 7, 4, 1),
  kDcCvac = key(1, 3, 7, 10, 1),
  kDcCvau = key(1, 3, 7, 11, 1),
  kDcCvap = key(1, 3, 7, 12, 1),
  kDcCvadp = key(1, 3, 7, 13, 1),
  kDcCivac = key(1, 3, 7, 14, 1),
};

// The same on all CPUs (cpus.h): those of Cortex-A57 and Neoverse N1.
constexpr uint64_t kCtr = 0x8444c004;
constexpr uint64_t kDczid = 4;  // log2 of the words that DC ZVA clears: 64 bytes

// Bits of PSTATE that user code has where the CPU knows them, in place.
constexpr uint64_t kSsbsBit = uint64_t{1} << 12;
constexpr uint64_t kDitBit = uint64_t{1} << 24;

// Bits that keep what is written to them.
constexpr uint64_t kFpcrMask = 0x07c00000;  // AHP, DN, FZ, RMode
constexpr uint64_t kFpcrFz16 = 1u << 19;    // where the CPU has half-precision arithmetic
constexpr uint64_t kFpsrMask = 0xf800009f;  // NZCV (of AArch32), QC, the cumulative exceptions

}  // namespace

// --- exceptions

bool Visitor::trap(Fault fault) {
  b_.trap(fault);
  return true;
}
bool Visitor::UDF(Imm<16>) { return trap(Fault::kUndefined); }
bool Visitor::HVC(Imm<16>) { return trap(Fault::kUndefined); }
bool Visitor::SMC(Imm<16>) { return trap(Fault::kUndefined); }
bool Visitor::HLT(Imm<16>) { return trap(Fault::kUndefined); }
bool Visitor::DCPS(Imm<16>, Imm<2>) { return trap(Fault::kUndefined); }
bool Visitor::ERET() { return trap(Fault::kUndefined); }
bool Visitor::ERETA(Imm<1>) { return trap(Fault::kUndefined); }
bool Visitor::DRPS() { return trap(Fault::kUndefined); }
bool Visitor::BRK(Imm<16>) { return trap(Fault::kBreakpoint); }
bool Visitor::SVC(Imm<16>) {
  b_.service(Service::kSyscall, next_pc());
  return true;
}

// --- hints

// libgpusim/guest/aarch64/gpusim_guest_isa.h; not allocated by the architecture.
constexpr uint64_t kTimeReleaseHint = 96, kTimeAcquireHint = 97;

bool Visitor::give_way(Turn turn) {
  set_class(InsnClass::kParallelism);
  b_.give_way(turn, kMonitor, next_pc());
  return true;
}
bool Visitor::HINT(Imm<4> CRm, Imm<3> op2) {
  const auto number = 8 * CRm.value + op2.value;
  if (!b_.has_simulated_time()) return true;
  if (number == kTimeReleaseHint) b_.service(Service::kTimeRelease, next_pc());
  if (number == kTimeAcquireHint) b_.service(Service::kTimeAcquire, next_pc());
  return true;
}
bool Visitor::NOP() { return true; }
bool Visitor::YIELD() { return give_way(Turn::kYield); }
bool Visitor::WFE() { return give_way(Turn::kWaitForEvent); }
bool Visitor::WFI() { return give_way(Turn::kYield); }
bool Visitor::SEV() { return give_way(Turn::kSignalEvent); }
bool Visitor::SEVL() {
  set_class(InsnClass::kParallelism);
  b_.konst(kMonitor, kLocalEvent);
  return true;
}

// --- barriers

bool Visitor::DMB(Imm<4>) {
  set_class(InsnClass::kParallelism);
  b_.fence();
  return true;
}
bool Visitor::DSB(Imm<4> m) { return DMB(m); }
bool Visitor::ISB(Imm<4>) {
  set_class(InsnClass::kParallelism);
  return true;
}
bool Visitor::SB() {
  set_class(InsnClass::kParallelism);
  return true;
}

// --- system instructions: caches are invisible here, but for DC ZVA

bool Visitor::SYS(Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t) {
  switch (key(1, op1, CRn, CRm, op2)) {
    case kDcZva: {
      set_class(InsnClass::kOffChipMemory);
      const Slot block = b_.temp();
      b_.andi64(block, x_src(t), ~uint64_t{63});
      for (uint64_t offset = 0; offset < 64; offset += 8) b_.st64(kZero, block, offset);
      return true;
    }
    case kIcIvau:
    case kDcCvac:
    case kDcCvau:
    case kDcCvap:
    case kDcCvadp:
    case kDcCivac:
      return true;
    default:
      return false;
  }
}

// Nothing for user code among them.
bool Visitor::SYSL(Imm<3>, Imm<4>, Imm<4>, Imm<3>, Reg) { return trap(Fault::kUndefined); }

// --- system registers

// Of FEAT_RNG: 64 bits that are the same in every run, of use to nobody who guards a secret. A
// counter and the core's number, each spread over the word, then mixed by multiplications and
// shifts. N Z C V = 0: success.
void Visitor::random_number(Slot d) {
  const Slot x = b_.temp(), t = b_.temp();
  b_.addi64(kRandom, kRandom, 0x9e3779b97f4a7c15);
  b_.konst(x, 0xd1342543de82ef95);
  b_.madd64(x, kCoreId, x, kRandom);
  constexpr uint64_t kFactors[] = {0xbf58476d1ce4e5b9, 0x94d049bb133111eb};
  for (const uint64_t factor : kFactors) {
    b_.lsri64(t, x, 31);
    b_.xor64(x, x, t);
    b_.konst(t, factor);
    b_.mul64(x, x, t);
  }
  b_.lsri64(t, x, 32);
  b_.xor64(d, x, t);
  b_.konst(kNzcv, 0);
}

bool Visitor::MRS(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t) {
  const Slot d = x_dst(t);
  const uint32_t which = key(2 + o0, op1, CRn, CRm, op2);
  const SystemFeatures has = system_features(b_.cpu());
  switch (which) {
    case kNzcvReg:
      b_.lsli64(d, kNzcv, 28);
      return true;
    case kFpcr:
      b_.lsri64(d, kFpState, 32);
      return true;
    case kFpsr:
      b_.mov32(d, kFpState);
      return true;
    case kDit:
      if (!has.dit) return false;
      b_.andi64(d, kPstate, kDitBit);
      return true;
    case kSsbs:
      if (!has.ssbs) return false;
      b_.andi64(d, kPstate, kSsbsBit);
      return true;
    case kRndr:
    case kRndrrs:
      if (!has.rng) return false;
      random_number(d);
      return true;
    case kTpidrEl0:
      b_.mov(d, kTpidr);
      return true;
    case kTpidrroEl0:
      b_.mov(d, kCoreId);
      return true;
    case kCntvctssEl0:
      if (!has.ecv) return false;
      [[fallthrough]];
    case kCntvctEl0:
      b_.service(Service::kReadCounter, next_pc(), d);
      return true;
    case kCntfrqEl0:
      b_.service(Service::kReadCounterFrequency, next_pc(), d);
      return true;
    case kCtrEl0:
      write_konst(t, kCtr);
      return true;
    case kDczidEl0:
      write_konst(t, kDczid);
      return true;
    case kPmuserenrEl0:  // performance counters are not for user code
      write_konst(t, 0);
      return true;
    default:
      break;
  }
  uint64_t value = 0;
  if (o0 != 1 || op1 != 0 || CRn != 0 || !id_register(b_.cpu(), CRm, op2, &value)) return false;
  write_konst(t, value);
  return true;
}

bool Visitor::MSR_reg(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t) {
  const Slot a = x_src(t);
  const SystemFeatures has = system_features(b_.cpu());
  switch (key(2 + o0, op1, CRn, CRm, op2)) {
    case kNzcvReg:
      b_.ubfx(kNzcv, a, 15, 28);
      return true;
    case kFpcr:
      b_.bfi64(kFpState, a, kFpState, (has.fp16 ? kFpcrMask | kFpcrFz16 : kFpcrMask) << 32, 32);
      return true;
    case kFpsr:
      b_.bfi64(kFpState, a, kFpState, kFpsrMask, 0);
      return true;
    case kDit:
      if (!has.dit) return false;
      b_.bfi64(kPstate, a, kPstate, kDitBit);
      return true;
    case kSsbs:
      if (!has.ssbs) return false;
      b_.bfi64(kPstate, a, kPstate, kSsbsBit);
      return true;
    case kTpidrEl0:
      b_.mov(kTpidr, a);
      return true;
    default:
      return false;
  }
}

// MSR (immediate): the other fields of PSTATE are not for EL0.
bool Visitor::MSR_imm(Imm<3> op1, Imm<4> CRm, Imm<3> op2) {
  const SystemFeatures has = system_features(b_.cpu());
  uint64_t bit = 0;
  if (op1 == 3 && op2 == 1 && has.ssbs) bit = kSsbsBit;
  if (op1 == 3 && op2 == 2 && has.dit) bit = kDitBit;
  if (bit == 0) return trap(Fault::kUndefined);
  if (CRm & 1) {
    b_.ori64(kPstate, kPstate, bit);
  } else {
    b_.andi64(kPstate, kPstate, ~bit);
  }
  return true;
}

// --- pointer authentication (FEAT_PAuth). The keys are disabled for the process, as
// prctl(PR_PAC_SET_ENABLED_KEYS) can ask: signing and authenticating leave pointers alone.

bool Visitor::PAC_reg(Imm<3>, Reg, Reg) {
  set_class(InsnClass::kIntegerLogical);
  return true;
}
bool Visitor::PAC_z(Imm<3>, Reg) {
  set_class(InsnClass::kIntegerLogical);
  return true;
}

// A code of our own, which the architecture allows (ID_AA64ISAR1_EL1.GPI): equal for equal
// operands.
bool Visitor::PACGA(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot x = b_.temp(), t = b_.temp();
  b_.konst(t, 0x9e3779b97f4a7c15);
  b_.mul64(x, x_src(n), t);
  b_.rori64(x, x, 29);
  b_.xor64(x, x, x_or_sp(m));
  b_.mul64(x, x, t);
  b_.lsri64(t, x, 32);
  b_.xor64(x, x, t);
  b_.lsli64(x_dst(d), x, 32);
  return true;
}

// 48-bit addresses. Bits 54:48 become copies of bit 55; above them a user address (bit 55 is 0) may
// keep its tag, any other is all ones.
bool Visitor::XPAC(Imm<1>, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (d == 31) return true;
  const Slot upper = b_.temp(), address = b_.temp();
  b_.sbf64(upper, x_src(d), 8, 63);
  b_.andi64(upper, upper, uint64_t{0xffff} << 48);
  b_.andi64(address, x_src(d), ~(uint64_t{0x7f} << 48));
  b_.or64(x_dst(d), address, upper);
  return true;
}

}  // namespace gpusim::a64
