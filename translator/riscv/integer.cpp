// Integer computation (unprivileged manual, 2.4 and 4.2) and conditional zero (Zicond).
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

using enum CompareRelation;

constexpr uint64_t extended(Imm<12> i) { return static_cast<uint64_t>(i.sign_extend()); }

}  // namespace

Slot Visitor::konst(uint64_t value) {
  if (value == 0) return kZero;
  const Slot t = b_.temp();
  b_.konst(t, value);
  return t;
}

bool Visitor::LUI(Imm<20> i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  write_konst(d, static_cast<uint64_t>(i.sign_extend()) << 12);
  return true;
}
bool Visitor::AUIPC(Imm<20> i, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  write_konst(d, pc_ + (static_cast<uint64_t>(i.sign_extend()) << 12));
  return true;
}

// LI and MV count as moves, NOP as a hint.
bool Visitor::ADDI(Imm<12> i, Reg n, Reg d, bool w) {
  const bool is_nop = d == 0 && n == 0 && i == 0 && !w;
  const bool is_move = n == 0 || (i == 0 && !w);
  set_class(is_nop    ? InsnClass::kOther
            : is_move ? InsnClass::kIntegerLogical
                      : InsnClass::kIntegerArithmetic);
  if (n == 0) {
    write_konst(d, extended(i));
  } else if (w) {
    if (i == 0)
      write_word(x_dst(d), x_src(n));
    else
      b_.addiw(x_dst(d), x_src(n), extended(i));
  } else if (i == 0) {
    b_.mov(x_dst(d), x_src(n));
  } else if (is_rv32_) {
    b_.addi32(x_dst(d), x_src(n), extended(i));
  } else {
    b_.addi64(x_dst(d), x_src(n), extended(i));
  }
  return true;
}

bool Visitor::set_less(CompareRelation relation, Reg d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerComparison);
  b_.sel_cmp(x_dst(d), konst(1), kZero, n, m, comparison(relation).pack());
  return true;
}
bool Visitor::set_less_imm(CompareRelation relation, Reg d, Reg n, Imm<12> i) {
  set_class(InsnClass::kIntegerComparison);
  b_.sel_cmpi(x_dst(d), konst(1), kZero, x_src(n), in_register(extended(i)),
              comparison(relation).pack());
  return true;
}
bool Visitor::SLTI(Imm<12> i, Reg n, Reg d) {
  return d == 0 ? custom_hint(i, n) : set_less_imm(kLessSigned, d, n, i);
}
bool Visitor::SLTIU(Imm<12> i, Reg n, Reg d) { return set_less_imm(kLessUnsigned, d, n, i); }
bool Visitor::SLT(Reg m, Reg n, Reg d) { return set_less(kLessSigned, d, x_src(n), x_src(m)); }
bool Visitor::SLTU(Reg m, Reg n, Reg d) { return set_less(kLessUnsigned, d, x_src(n), x_src(m)); }

bool Visitor::logic_imm(MicroOp op, Reg d, Reg n, Imm<12> i) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(op, x_dst(d), x_src(n), 0, 0, in_register(extended(i)));
  return true;
}
bool Visitor::XORI(Imm<12> i, Reg n, Reg d) { return logic_imm(MicroOp::xori64, d, n, i); }
bool Visitor::ORI(Imm<12> i, Reg n, Reg d) { return logic_imm(MicroOp::ori64, d, n, i); }
bool Visitor::ANDI(Imm<12> i, Reg n, Reg d) { return logic_imm(MicroOp::andi64, d, n, i); }

// A shifted word is extended by one more micro-op.
bool Visitor::shift_imm(const Widths& op, bool w, Reg d, Reg n, uint32_t amount) {
  set_class(InsnClass::kIntegerLogical);
  if (!w) {
    if (amount == 0) {
      b_.mov(x_dst(d), x_src(n));
    } else {
      b_.emit(pick(op, w), x_dst(d), x_src(n), 0, 0, amount);
    }
  } else if (amount == 0) {
    write_word(x_dst(d), x_src(n));
  } else {
    const Slot t = b_.temp();
    b_.emit(pick(op, w), t, x_src(n), 0, 0, amount);
    write_word(x_dst(d), t);
  }
  return true;
}
// Shifts of words are one micro-op: to the left end of the register and back, and a word that was
// shifted right has no sign to extend.
bool Visitor::SLLI(Imm<6> i, Reg n, Reg d, bool w) {
  if (!w) return shift_imm({MicroOp::lsli64, MicroOp::lsli32, MicroOp::lsli32}, w, d, n, i);
  set_class(InsnClass::kIntegerLogical);
  b_.sbf64(x_dst(d), x_src(n), 32 + i, 32);
  return true;
}
bool Visitor::SRLI(Imm<6> i, Reg n, Reg d, bool w) {
  if (!w || i == 0)
    return shift_imm({MicroOp::lsri64, MicroOp::lsri32, MicroOp::lsri32}, w, d, n, i);
  set_class(InsnClass::kIntegerLogical);
  b_.lsri32(x_dst(d), x_src(n), i);
  return true;
}
bool Visitor::SRAI(Imm<6> i, Reg n, Reg d, bool w) {
  if (!w) return shift_imm({MicroOp::asri64, MicroOp::asri32, MicroOp::asri32}, w, d, n, i);
  set_class(InsnClass::kIntegerLogical);
  b_.sbf64(x_dst(d), x_src(n), 32, static_cast<uint8_t>(32 + i));
  return true;
}

bool Visitor::arithmetic(InsnClass c, const Widths& op, bool w, Reg d, Slot n, Slot m) {
  set_class(c);
  b_.emit(pick(op, w), x_dst(d), n, m);
  return true;
}
bool Visitor::logic(MicroOp op, Reg d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(op, x_dst(d), n, m);
  return true;
}
// C.MV is an addition to x0, and a move.
bool Visitor::ADD(Reg m, Reg n, Reg d, bool w) {
  if (!w && (n == 0 || m == 0)) {
    set_class(InsnClass::kIntegerLogical);
    b_.mov(x_dst(d), x_src(n == 0 ? m : n));
    return true;
  }
  return arithmetic(InsnClass::kIntegerArithmetic, {MicroOp::add64, MicroOp::addw, MicroOp::add32},
                    w, d, x_src(n), x_src(m));
}
bool Visitor::SUB(Reg m, Reg n, Reg d, bool w) {
  return arithmetic(InsnClass::kIntegerArithmetic, {MicroOp::sub64, MicroOp::subw, MicroOp::sub32},
                    w, d, x_src(n), x_src(m));
}
bool Visitor::SLL(Reg m, Reg n, Reg d, bool w) {
  return arithmetic(InsnClass::kIntegerLogical, {MicroOp::lsl64, MicroOp::sllw, MicroOp::lsl32}, w,
                    d, x_src(n), x_src(m));
}
bool Visitor::SRL(Reg m, Reg n, Reg d, bool w) {
  return arithmetic(InsnClass::kIntegerLogical, {MicroOp::lsr64, MicroOp::srlw, MicroOp::lsr32}, w,
                    d, x_src(n), x_src(m));
}
bool Visitor::SRA(Reg m, Reg n, Reg d, bool w) {
  return arithmetic(InsnClass::kIntegerLogical, {MicroOp::asr64, MicroOp::sraw, MicroOp::asr32}, w,
                    d, x_src(n), x_src(m));
}
bool Visitor::XOR(Reg m, Reg n, Reg d) { return logic(MicroOp::xor64, d, x_src(n), x_src(m)); }
bool Visitor::OR(Reg m, Reg n, Reg d) { return logic(MicroOp::or64, d, x_src(n), x_src(m)); }
bool Visitor::AND(Reg m, Reg n, Reg d) { return logic(MicroOp::and64, d, x_src(n), x_src(m)); }

// d = rs2 is zero (EQZ) or not (NEZ) ? 0 : rs1
bool Visitor::conditional_zero(bool when_zero, Reg d, Reg n, Reg m) {
  set_class(InsnClass::kIntegerLogical);
  const Slot if_zero = when_zero ? kZero : x_src(n), otherwise = when_zero ? x_src(n) : kZero;
  b_.sel_cmpi(x_dst(d), if_zero, otherwise, x_src(m), 0, comparison(kEqual).pack());
  return true;
}
bool Visitor::CZERO_EQZ(Reg m, Reg n, Reg d) { return conditional_zero(true, d, n, m); }
bool Visitor::CZERO_NEZ(Reg m, Reg n, Reg d) { return conditional_zero(false, d, n, m); }

}  // namespace gpusim::riscv
