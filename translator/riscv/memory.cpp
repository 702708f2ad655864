// Loads and stores (unprivileged manual, 2.6 and 4.3). Accesses off their natural alignment work,
// as Linux has it.
//
// Addresses of RV32 wrap around at 2^32. A sum that leaves those bits is not wrapped here: it would
// come to the first or the last page, which 32-bit programs do not have (kBegin32 and kEnd32 in
// translator/common/limits.h), so that the access is a fault either way.
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {

// x0 is no base but for absolute addresses.
uint64_t Visitor::offset_from(Reg n, int64_t offset) const {
  return n == 0 ? in_register(static_cast<uint64_t>(offset)) : static_cast<uint64_t>(offset);
}

bool Visitor::load(MicroOp op, Reg d, Reg n, Imm<12> i) {
  set_class(InsnClass::kOffChipMemory);
  b_.emit(op, x_dst(d), x_src(n), 0, 0, offset_from(n, i.sign_extend()));
  return true;
}
bool Visitor::LB(Imm<12> i, Reg n, Reg d) {
  return load(is_rv32_ ? MicroOp::lds8w : MicroOp::lds8x, d, n, i);
}
bool Visitor::LH(Imm<12> i, Reg n, Reg d) {
  return load(is_rv32_ ? MicroOp::lds16w : MicroOp::lds16x, d, n, i);
}
bool Visitor::LW(Imm<12> i, Reg n, Reg d) {
  return load(is_rv32_ ? MicroOp::ldu32 : MicroOp::lds32x, d, n, i);
}
bool Visitor::LD(Imm<12> i, Reg n, Reg d) { return load(MicroOp::ld64, d, n, i); }
bool Visitor::LBU(Imm<12> i, Reg n, Reg d) { return load(MicroOp::ldu8, d, n, i); }
bool Visitor::LHU(Imm<12> i, Reg n, Reg d) { return load(MicroOp::ldu16, d, n, i); }
bool Visitor::LWU(Imm<12> i, Reg n, Reg d) { return load(MicroOp::ldu32, d, n, i); }

bool Visitor::store(MicroOp op, Imm<7> i, Slot value, Reg n, Imm<5> k) {
  set_class(InsnClass::kOffChipMemory);
  b_.emit(op, value, x_src(n), 0, 0, offset_from(n, concat(i, k).sign_extend()));
  return true;
}
bool Visitor::SB(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st8, i, x_src(m), n, k);
}
bool Visitor::SH(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st16, i, x_src(m), n, k);
}
bool Visitor::SW(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st32, i, x_src(m), n, k);
}
bool Visitor::SD(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st64, i, x_src(m), n, k);
}

// --- floating point: narrow values are boxed; stores take the low bits, whatever is above them

bool Visitor::load_float(MicroOp op, unsigned bits, Reg d, Reg n, Imm<12> i) {
  set_class(InsnClass::kOffChipMemory);
  const Slot value = bits == 64 ? f_reg(d) : b_.temp();
  b_.emit(op, value, x_src(n), 0, 0, offset_from(n, i.sign_extend()));
  if (bits < 64) b_.ori64(f_reg(d), value, ~uint64_t{0} << bits);
  return true;
}
bool Visitor::FLH(Imm<12> i, Reg n, Reg d) { return load_float(MicroOp::ldu16, 16, d, n, i); }
bool Visitor::FLW(Imm<12> i, Reg n, Reg d) { return load_float(MicroOp::ldu32, 32, d, n, i); }
bool Visitor::FLD(Imm<12> i, Reg n, Reg d) { return load_float(MicroOp::ld64, 64, d, n, i); }
bool Visitor::FSH(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st16, i, f_reg(m), n, k);
}
bool Visitor::FSW(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st32, i, f_reg(m), n, k);
}
bool Visitor::FSD(Imm<7> i, Reg m, Reg n, Imm<5> k) {
  return store(MicroOp::st64, i, f_reg(m), n, k);
}

}  // namespace gpusim::riscv
