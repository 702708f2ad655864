// Exceptions, hints, barriers, system registers and instructions, as user code under Linux sees
// them (C4.1.87, D19; Documentation/arm64/cpu-feature-registers.rst of Linux).
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

// op0:op1:CRn:CRm:op2 as the manual lists registers.
constexpr uint32_t key(uint32_t op0, uint32_t op1, uint32_t CRn, uint32_t CRm, uint32_t op2) {
  return op0 << 14 | op1 << 11 | CRn << 7 | CRm << 3 | op2;
}

enum SystemRegister : uint32_t {
  kMidrEl1 = key(3, 0, 0, 0, 0),
  kMpidrEl1 = key(3, 0, 0, 0, 5),
  kRevidrEl1 = key(3, 0, 0, 0, 6),
  kIdAa64Pfr0El1 = key(3, 0, 0, 4, 0),
  kIdAa64Isar0El1 = key(3, 0, 0, 6, 0),
  kCtrEl0 = key(3, 3, 0, 0, 1),
  kDczidEl0 = key(3, 3, 0, 0, 7),
  kNzcvReg = key(3, 3, 4, 2, 0),
  kFpcr = key(3, 3, 4, 4, 0),
  kFpsr = key(3, 3, 4, 4, 1),
  kPmuserenrEl0 = key(3, 3, 9, 14, 0),
  kTpidrEl0 = key(3, 3, 13, 0, 2),
  kTpidrroEl0 = key(3, 3, 13, 0, 3),
  kCntfrqEl0 = key(3, 3, 14, 0, 0),
  kCntvctEl0 = key(3, 3, 14, 0, 2),
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

// A Cortex-A57, in the values that qemu-aarch64 -cpu cortex-a57 gives.
constexpr uint64_t kMidr = 0x411fd070;
constexpr uint64_t kCtr = 0x8444c004;
constexpr uint64_t kDczid = 4;  // log2 of the words that DC ZVA clears: 64 bytes
constexpr uint64_t kIdAa64Pfr0 = 0x11;
constexpr uint64_t kIdAa64Isar0 = 0x11120;      // AES with PMULL, SHA1, SHA256, CRC32
constexpr uint64_t kMpidr = uint64_t{1} << 31;  // what Linux shows to every process

// Bits that keep what is written to them.
constexpr uint64_t kFpcrMask = 0x07c00000;  // AHP, DN, FZ, RMode
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

bool Visitor::give_way() {
  set_class(InsnClass::kParallelism);
  b_.give_way(next_pc());
  return true;
}
bool Visitor::HINT(Imm<4>, Imm<3>) { return true; }
bool Visitor::NOP() { return true; }
bool Visitor::YIELD() { return give_way(); }
bool Visitor::WFE() { return give_way(); }
bool Visitor::WFI() { return give_way(); }
bool Visitor::SEV() {
  set_class(InsnClass::kParallelism);
  b_.fence();
  return true;
}
bool Visitor::SEVL() { return SEV(); }

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

// The fields that user code may write (DIT, SSBS, TCO) came with extensions that are not here.
bool Visitor::MSR_imm(Imm<3>, Imm<4>, Imm<3>) { return trap(Fault::kUndefined); }

bool Visitor::MRS(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t) {
  const Slot d = x_dst(t);
  const uint32_t which = key(2 + o0, op1, CRn, CRm, op2);
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
    case kTpidrEl0:
      b_.mov(d, kTpidr);
      return true;
    case kTpidrroEl0:
      b_.mov(d, kCoreId);
      return true;
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
    case kMidrEl1:
      write_konst(t, kMidr);
      return true;
    case kMpidrEl1:
      write_konst(t, kMpidr);
      return true;
    case kRevidrEl1:
    case kPmuserenrEl0:  // performance counters are not for user code
      write_konst(t, 0);
      return true;
    case kIdAa64Pfr0El1:
      write_konst(t, kIdAa64Pfr0);
      return true;
    case kIdAa64Isar0El1:
      write_konst(t, kIdAa64Isar0);
      return true;
    default:
      break;
  }
  // Linux emulates the AArch64 identification registers; those not listed read as zero.
  if (which >= key(3, 0, 0, 4, 0) && which <= key(3, 0, 0, 7, 7)) {
    write_konst(t, 0);
    return true;
  }
  return false;
}

bool Visitor::MSR_reg(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t) {
  const Slot a = x_src(t);
  switch (key(2 + o0, op1, CRn, CRm, op2)) {
    case kNzcvReg:
      b_.ubfx(kNzcv, a, 15, 28);
      return true;
    case kFpcr:
      b_.bfi64(kFpState, a, kFpState, kFpcrMask << 32, 32);
      return true;
    case kFpsr:
      b_.bfi64(kFpState, a, kFpState, kFpsrMask, 0);
      return true;
    case kTpidrEl0:
      b_.mov(kTpidr, a);
      return true;
    default:
      return false;
  }
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
