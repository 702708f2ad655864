// Fences, environment calls, and the control and status registers that user code has (unprivileged
// manual, 2.7, 2.8, chapters 6, 9, 10 and 11.2).
#include "translator/riscv/float_state.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

enum Csr : uint32_t {
  kFflags = 0x001,
  kFrmCsr = 0x002,
  kFcsr = 0x003,
  kVstart = 0x008,
  kVxsat = 0x009,
  kVxrm = 0x00a,
  kVcsr = 0x00f,
  kCycle = 0xc00,
  kTime = 0xc01,
  kInstret = 0xc02,
  kVl = 0xc20,
  kVtype = 0xc21,
  kVlenb = 0xc22,
  kCycleHigh = 0xc80,  // of RV32, as the next two: bits 63 to 32
  kTimeHigh = 0xc81,
  kInstretHigh = 0xc82,
};

}  // namespace

// --- fences and hints

bool Visitor::FENCE(Imm<4>, Imm<4>, Imm<4>, Reg, Reg) {
  set_class(InsnClass::kParallelism);
  b_.fence();
  return true;
}
bool Visitor::FENCE_I(Imm<12>, Reg, Reg) {
  set_class(InsnClass::kParallelism);
  return true;
}
bool Visitor::give_way(Turn turn) {
  set_class(InsnClass::kParallelism);
  b_.give_way(turn, kMonitor, next_pc_);
  return true;
}
// SLTI to x0 is a hint that the manual leaves to custom use (2.9): other processors do nothing.
// libgpusim/guest/riscv64/gpusim_guest_isa.h has the other half.
bool Visitor::custom_hint(Imm<12> i, Reg n) {
  enum : uint32_t {
    kCore = 0x6c0,  // rs1 = core count << 32 | core number
    kWaitForEvent,
    kSignalEvent,
    kTimeRelease,  // of the place in a0 and the number in a1
    kTimeAcquire,
    kCoreCount,  // rs1 = core count: RV32's kCore has the number alone
  };
  switch (i) {
    case kCore:
      b_.emit(is_rv32_ ? MicroOp::mov32 : MicroOp::mov, x_dst(n), kCoreId);
      return true;
    case kCoreCount:
      b_.lsri64(x_dst(n), kCoreId, 32);
      return true;
    case kWaitForEvent:
      return give_way(Turn::kWaitForEvent);
    case kSignalEvent:
      return give_way(Turn::kSignalEvent);
    case kTimeRelease:
      if (b_.has_simulated_time()) b_.service(Service::kTimeRelease, next_pc_);
      return true;
    case kTimeAcquire:
      if (b_.has_simulated_time()) b_.service(Service::kTimeAcquire, next_pc_);
      return true;
    default:
      return true;
  }
}

bool Visitor::PAUSE() { return give_way(Turn::kYield); }
bool Visitor::WRS_NTO() { return give_way(Turn::kWaitForEvent); }
bool Visitor::WRS_STO() { return give_way(Turn::kYield); }

// --- calls to the environment

bool Visitor::ECALL() {
  b_.service(Service::kSyscall, next_pc_);
  return true;
}
bool Visitor::EBREAK() {
  b_.trap(Fault::kBreakpoint);
  return true;
}

// --- control and status registers

void Visitor::read_float_csr(uint32_t csr, Slot d) {
  if (csr == kFrmCsr) {
    b_.mov(d, kFrm);
    return;
  }
  const Slot flags = csr == kFflags ? d : b_.temp();
  b_.rbit64(flags, kFpState);
  b_.lsri64(flags, flags, 59);
  if (csr == kFcsr) b_.add_lsl64(d, flags, kFrm, 5);
}

void Visitor::write_float_csr(uint32_t csr, Slot value) {
  if (csr != kFrmCsr) {
    const Slot flags = b_.temp();
    b_.rbit64(flags, value);
    b_.lsri64(flags, flags, 59);
    b_.bfi64(kFpState, flags, kFpState, 0x1f, 0);
  }
  if (csr == kFflags) return;
  b_.ubfx(kFrm, value, 7, csr == kFcsr ? 5 : 0);
  const Slot mode = b_.temp();
  b_.add_lsl64(mode, kFrm, kFrm, 1);
  b_.lsr64(mode, konst(fp_mode_table()), mode);
  b_.bfi64(kFpState, mode, kFpState, uint64_t{7} << kFpModeShift, kFpModeShift);
}

// vxrm and vxsat are parts of vcsr.
void Visitor::read_vector_csr(uint32_t csr, Slot d) {
  switch (csr) {
    case kVstart:
      b_.mov(d, vector_slot(vector::kVstart));
      break;
    case kVxsat:
      b_.andi64(d, vector_slot(vector::kVcsr), 1);
      break;
    case kVxrm:
      b_.lsri64(d, vector_slot(vector::kVcsr), 1);
      break;
    default:
      b_.mov(d, vector_slot(vector::kVcsr));
      break;
  }
}
void Visitor::write_vector_csr(uint32_t csr, Slot value) {
  const Slot all = vector_slot(vector::kVcsr);
  switch (csr) {
    case kVstart:  // as many bits as the index of an element has
      b_.andi64(vector_slot(vector::kVstart), value, (1u << vector::kLogBits) - 1);
      break;
    case kVxsat:
      b_.bfi64(all, value, all, 1, 0);
      break;
    case kVxrm:
      b_.bfi64(all, value, all, 6, 1);
      break;
    default:
      b_.andi64(all, value, 7);
      break;
  }
}

bool Visitor::access_csr(uint32_t csr, Change change, bool writes, Slot operand, Reg d) {
  switch (csr) {
    case kFflags:
    case kFrmCsr:
    case kFcsr:
    case kVstart:
    case kVxsat:
    case kVxrm:
    case kVcsr: {
      const bool is_float = csr <= kFcsr;
      if (!is_float && is_rv32_) return false;
      // The operand may be the destination, too.
      const Slot old = b_.temp();
      if (is_float)
        read_float_csr(csr, old);
      else
        read_vector_csr(csr, old);
      Slot value = operand;
      if (change != Change::kWrite) {
        value = b_.temp();
        b_.emit(change == Change::kSet ? MicroOp::or64 : MicroOp::bic64, value, old, operand);
      }
      if (writes && is_float) write_float_csr(csr, value);
      if (writes && !is_float) write_vector_csr(csr, value);
      b_.mov(x_dst(d), old);
      return true;
    }
    case kCycle:
    case kTime:
    case kInstret:
      if (writes) return false;
      if (is_rv32_) b_.konst(x_dst(d), 0);  // the lowest bit
      b_.service(Service::kReadCounter, next_pc_, x_dst(d));
      return true;
    case kCycleHigh:
    case kTimeHigh:
    case kInstretHigh:
      if (writes || !is_rv32_) return false;
      b_.konst(x_dst(d), 32);
      b_.service(Service::kReadCounter, next_pc_, x_dst(d));
      return true;
    case kVl:
    case kVtype:
      if (writes || is_rv32_) return false;
      b_.mov(x_dst(d), vector_slot(csr == kVl ? vector::kVl : vector::kVtype));
      return true;
    case kVlenb:
      if (writes || is_rv32_) return false;
      write_konst(d, vector::kBytes);
      return true;
    default:
      return false;
  }
}
bool Visitor::CSRRW(Imm<12> c, Reg n, Reg d) {
  return access_csr(c, Change::kWrite, true, x_src(n), d);
}
bool Visitor::CSRRS(Imm<12> c, Reg n, Reg d) {
  return access_csr(c, Change::kSet, n != 0, x_src(n), d);
}
bool Visitor::CSRRC(Imm<12> c, Reg n, Reg d) {
  return access_csr(c, Change::kClear, n != 0, x_src(n), d);
}
bool Visitor::CSRRWI(Imm<12> c, Imm<5> u, Reg d) {
  return access_csr(c, Change::kWrite, true, konst(u), d);
}
bool Visitor::CSRRSI(Imm<12> c, Imm<5> u, Reg d) {
  return access_csr(c, Change::kSet, u != 0, konst(u), d);
}
bool Visitor::CSRRCI(Imm<12> c, Imm<5> u, Reg d) {
  return access_csr(c, Change::kClear, u != 0, konst(u), d);
}

}  // namespace gpusim::riscv
