// Branches (C4.1.87). A block's last micro-op; targets are guest addresses until link time.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

bool Visitor::branch(MicroOp op, Slot a, uint32_t imm16, int64_t words) {
  set_class(InsnClass::kControlFlow);
  b_.branch_imm(op, a, static_cast<uint16_t>(imm16), label(words));
  return true;
}

bool Visitor::branch_reg(Slot target, JumpHint hint) {
  set_class(InsnClass::kControlFlow);
  b_.jmp_reg(target, hint);
  return true;
}

bool Visitor::B_cond(Imm<19> i, Imm<4> cond) {
  if (cond >= 14) {  // AL and NV
    set_class(InsnClass::kControlFlow);
    b_.jmp(label(i.sign_extend()));
    return true;
  }
  return branch(MicroOp::br_cond, kNzcv, condition_mask(cond), i.sign_extend());
}

bool Visitor::B(Imm<26> i) {
  set_class(InsnClass::kControlFlow);
  b_.jmp(label(i.sign_extend()));
  return true;
}

bool Visitor::BL(Imm<26> i) {
  set_class(InsnClass::kControlFlow);
  b_.konst(kLink, next_pc());
  b_.call(label(i.sign_extend()));
  return true;
}

bool Visitor::CBZ(bool sf, Imm<19> i, Reg t) {
  return branch(sf ? MicroOp::bri_eq64 : MicroOp::bri_eq32, x_src(t), 0, i.sign_extend());
}
bool Visitor::CBNZ(bool sf, Imm<19> i, Reg t) {
  return branch(sf ? MicroOp::bri_ne64 : MicroOp::bri_ne32, x_src(t), 0, i.sign_extend());
}
bool Visitor::TBZ(Imm<1> b5, Imm<5> b40, Imm<14> i, Reg t) {
  return branch(MicroOp::br_bit0, x_src(t), concat(b5, b40), i.sign_extend());
}
bool Visitor::TBNZ(Imm<1> b5, Imm<5> b40, Imm<14> i, Reg t) {
  return branch(MicroOp::br_bit1, x_src(t), concat(b5, b40), i.sign_extend());
}

bool Visitor::BR(Reg n) { return branch_reg(x_src(n), JumpHint::kNone); }
bool Visitor::RET(Reg n) { return branch_reg(x_src(n), JumpHint::kReturn); }
bool Visitor::BLR(Reg n) { return call_reg(n); }

bool Visitor::call_reg(Reg n) {
  Slot target = x_src(n);
  if (target == kLink) {
    target = b_.temp();
    b_.mov(target, kLink);
  }
  b_.konst(kLink, next_pc());
  return branch_reg(target, JumpHint::kCall);
}

// With pointer authentication where the keys are disabled; see PAC_reg.
bool Visitor::BRA_z(Imm<1>, Reg n) { return BR(n); }
bool Visitor::BLRA_z(Imm<1>, Reg n) { return call_reg(n); }
bool Visitor::BRA(Imm<1>, Reg n, Reg) { return BR(n); }
bool Visitor::BLRA(Imm<1>, Reg n, Reg) { return call_reg(n); }
bool Visitor::RETA(Imm<1>) { return branch_reg(kLink, JumpHint::kReturn); }

}  // namespace gpusim::a64
