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
  const uint64_t target = in_register(pc_ + halfwords(g, k, h, i));
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
    b_.emit(is_rv32_ ? MicroOp::addi32 : MicroOp::addi64, target, sum, 0, 0,
            static_cast<uint64_t>(i.sign_extend()));
    sum = target;
  }
  b_.andi64(target, sum, in_register(~uint64_t{1}));
  if (d != 0) write_konst(d, next_pc_);
  const JumpHint hint = is_link(d)   ? JumpHint::kCall
                        : is_link(n) ? JumpHint::kReturn
                                     : JumpHint::kNone;
  b_.jmp_reg(target, hint);
  return true;
}

bool Visitor::branch(const Compared& rv64, const Compared& rv32, uint64_t offset, Reg n, Reg m) {
  set_class(InsnClass::kControlFlow);
  const Compared& op = is_rv32_ ? rv32 : rv64;
  const uint64_t target = in_register(pc_ + offset);
  if (m == 0) {
    b_.branch_imm(op.with_zero, x_src(n), 0, target);
  } else {
    b_.branch(op.registers, x_src(n), x_src(m), target);
  }
  return true;
}
bool Visitor::BEQ(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_eq64, MicroOp::bri_eq64}, {MicroOp::br_eq32, MicroOp::bri_eq32},
                halfwords(g, h, i, k), n, m);
}
bool Visitor::BNE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_ne64, MicroOp::bri_ne64}, {MicroOp::br_ne32, MicroOp::bri_ne32},
                halfwords(g, h, i, k), n, m);
}
bool Visitor::BLT(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_lt64, MicroOp::bri_lt64}, {MicroOp::br_lt32, MicroOp::bri_lt32},
                halfwords(g, h, i, k), n, m);
}
bool Visitor::BGE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_ge64, MicroOp::bri_ge64}, {MicroOp::br_ge32, MicroOp::bri_ge32},
                halfwords(g, h, i, k), n, m);
}
bool Visitor::BLTU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_ltu64, MicroOp::bri_ltu64}, {MicroOp::br_ltu32, MicroOp::bri_ltu32},
                halfwords(g, h, i, k), n, m);
}
bool Visitor::BGEU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h) {
  return branch({MicroOp::br_geu64, MicroOp::bri_geu64}, {MicroOp::br_geu32, MicroOp::bri_geu32},
                halfwords(g, h, i, k), n, m);
}

}  // namespace gpusim::riscv
