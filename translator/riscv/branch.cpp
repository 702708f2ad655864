// Jumps and branches (unprivileged manual, 2.5). A block's last micro-op; targets are guest
// addresses until link time.
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

// Table 3 of the manual: what jumps through or to these registers mean for a stack of returns.
constexpr bool is_link(Reg r) { return r == kRa || r == kT0; }

template <class... Parts>
constexpr uint64_t halfwords(Parts... parts) {
  return static_cast<uint64_t>(concat(parts...).sign_extend()) * 2;
}

}  // namespace

bool Visitor::JAL(Imm<1> g, Imm<10> i, Imm<1> h, Imm<8> k, Reg d) {
  set_class(InsnClass::kControlFlow);
  const uint64_t target = pc_ + halfwords(g, k, h, i);
  if (d != 0) write_konst(d, next_pc_);
  if (is_link(d)) {
    b_.call(target);
  } else {
    b_.jmp(target);
  }
  return true;
}

bool Visitor::JALR(Imm<12> i, Reg n, Reg d) {
  set_class(InsnClass::kControlFlow);
  const Slot target = b_.temp();
  Slot sum = x_src(n);
  if (i != 0) {
    b_.addi64(target, sum, static_cast<uint64_t>(i.sign_extend()));
    sum = target;
  }
  b_.andi64(target, sum, ~uint64_t{1});
  if (d != 0) write_konst(d, next_pc_);
  const JumpHint hint = is_link(d)   ? JumpHint::kCall
                        : is_link(n) ? JumpHint::kReturn
                                     : JumpHint::kNone;
  b_.jmp_reg(target, hint);
  return true;
}

bool Visitor::branch(MicroOp op, MicroOp op_imm, uint64_t offset, Reg n, Reg m) {
  set_class(InsnClass::kControlFlow);
  if (m == 0) {
    b_.branch_imm(op_imm, x_src(n), 0, pc_ + offset);
  } else {
    b_.branch(op, x_src(n), x_src(m), pc_ + offset);
  }
  return true;
}
bool Visitor::BEQ(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_eq64, MicroOp::bri_eq64, halfwords(g, h, i, k), n, m);
}
bool Visitor::BNE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_ne64, MicroOp::bri_ne64, halfwords(g, h, i, k), n, m);
}
bool Visitor::BLT(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_lt64, MicroOp::bri_lt64, halfwords(g, h, i, k), n, m);
}
bool Visitor::BGE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_ge64, MicroOp::bri_ge64, halfwords(g, h, i, k), n, m);
}
bool Visitor::BLTU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_ltu64, MicroOp::bri_ltu64, halfwords(g, h, i, k), n, m);
}
bool Visitor::BGEU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch(MicroOp::br_geu64, MicroOp::bri_geu64, halfwords(g, h, i, k), n, m);
}

}  // namespace gpusim::riscv
