// Multiply and divide (M, unprivileged manual, chapter 7). The division micro-ops give 0 for x / 0
// and the dividend for the one overflow; RISC-V wants all ones and the dividend.
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {

bool Visitor::MUL(Reg m, Reg n, Reg d, bool w) {
  return arithmetic(InsnClass::kIntegerArithmetic, {MicroOp::mul64, MicroOp::mulw, MicroOp::mul32},
                    w, d, x_src(n), x_src(m));
}

// The high word of a product that has 64 bits: RV32's.
bool Visitor::high_word(MicroOp multiply_add, Reg d, Slot n, Slot m) {
  const Slot product = b_.temp();
  b_.emit(multiply_add, product, n, m, kZero);
  b_.lsri64(x_dst(d), product, 32);
  return true;
}
bool Visitor::MULH(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (is_rv32_) return high_word(MicroOp::smaddl, d, x_src(n), x_src(m));
  b_.smulh(x_dst(d), x_src(n), x_src(m));
  return true;
}
bool Visitor::MULHU(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (is_rv32_) return high_word(MicroOp::umaddl, d, x_src(n), x_src(m));
  b_.umulh(x_dst(d), x_src(n), x_src(m));
  return true;
}
// Signed rs1. RV32: 64 bits hold its product with rs2. RV64: where it is negative, the unsigned
// product has 2^64 * rs2 too much.
bool Visitor::MULHSU(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (is_rv32_) {
    const Slot factor = b_.temp();
    b_.sbf64(factor, x_src(n), 32, 32);
    return high_word(MicroOp::madd64, d, factor, x_src(m));
  }
  const Slot high = b_.temp(), excess = b_.temp();
  b_.asri64(excess, x_src(n), 63);
  b_.and64(excess, excess, x_src(m));
  b_.umulh(high, x_src(n), x_src(m));
  b_.sub64(x_dst(d), high, excess);
  return true;
}

// quotient = n / m, all ones for m = 0; of words in the low half, where w says so. RV32 has only
// those.
void Visitor::divide(bool w, bool is_signed, Slot quotient, Slot n, Slot m) {
  set_class(InsnClass::kIntegerDivision);
  const Slot q = b_.temp();
  if (w || is_rv32_) {
    b_.emit(is_signed ? MicroOp::sdiv32 : MicroOp::udiv32, q, n, m);
  } else {
    b_.emit(is_signed ? MicroOp::sdiv64 : MicroOp::udiv64, q, n, m);
  }
  const uint8_t is_zero = CompareKind{CompareRelation::kEqual, w || is_rv32_, false}.pack();
  b_.sel_cmpi(quotient, konst(in_register(~uint64_t{0})), q, m, 0, is_zero);
}
bool Visitor::DIV(Reg m, Reg n, Reg d, bool w) {
  const Slot t = w ? b_.temp() : x_dst(d);
  divide(w, true, t, x_src(n), x_src(m));
  if (w) write_word(x_dst(d), t);
  return true;
}
bool Visitor::DIVU(Reg m, Reg n, Reg d, bool w) {
  const Slot t = w ? b_.temp() : x_dst(d);
  divide(w, false, t, x_src(n), x_src(m));
  if (w) write_word(x_dst(d), t);
  return true;
}

// n - q * m: the dividend where m is 0, whatever q is, and 0 where the quotient overflows.
bool Visitor::remainder(bool w, bool is_signed, Reg d, Reg n, Reg m) {
  set_class(InsnClass::kIntegerDivision);
  const Slot q = b_.temp();
  if (w || is_rv32_) {
    b_.emit(is_signed ? MicroOp::sdiv32 : MicroOp::udiv32, q, x_src(n), x_src(m));
    const Slot rest = is_rv32_ ? x_dst(d) : b_.temp();
    b_.msub32(rest, q, x_src(m), x_src(n));
    if (!is_rv32_) write_word(x_dst(d), rest);
  } else {
    b_.emit(is_signed ? MicroOp::sdiv64 : MicroOp::udiv64, q, x_src(n), x_src(m));
    b_.msub64(x_dst(d), q, x_src(m), x_src(n));
  }
  return true;
}
bool Visitor::REM(Reg m, Reg n, Reg d, bool w) { return remainder(w, true, d, n, m); }
bool Visitor::REMU(Reg m, Reg n, Reg d, bool w) { return remainder(w, false, d, n, m); }

}  // namespace gpusim::riscv
