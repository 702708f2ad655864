// Logic and moves: immediate, shifted register, wide immediate (C4.1.86, C4.1.89).
// TST counts as a comparison, every other one as logic.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

void Visitor::write_konst(Reg d, uint64_t value) {
  if (d != 31) b_.konst(x_dst(d), value);
}

// --- immediate; Rd is SP where flags are not set

bool Visitor::AND_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.andi64(x_or_sp(d), x_src(n), bit_mask(sf, N, r, s));
  return true;
}

bool Visitor::ORR_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint64_t imm = bit_mask(sf, N, r, s);
  if (n == 31)
    b_.konst(x_or_sp(d), imm);  // MOV
  else
    b_.emit(sf ? MicroOp::ori64 : MicroOp::ori32, x_or_sp(d), x_src(n), 0, 0, imm);
  return true;
}

bool Visitor::EOR_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(sf ? MicroOp::xori64 : MicroOp::xori32, x_or_sp(d), x_src(n), 0, 0,
          bit_mask(sf, N, r, s));
  return true;
}

bool Visitor::ANDS_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  const Slot result = readable_dst(d);
  b_.andi64(result, x_src(n), bit_mask(sf, N, r, s));
  return logical_flags(sf, d, result);
}

bool Visitor::logical_flags(bool sf, Reg d, Slot result) {
  b_.emit(sf ? MicroOp::fl_nz64 : MicroOp::fl_nz32, kNzcv, result);
  set_class(d == 31 ? InsnClass::kIntegerComparison : InsnClass::kIntegerLogical);
  return true;
}

// --- shifted register

bool Visitor::logical(bool sf, MicroOp op64, MicroOp op32, Reg d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(sf ? op64 : op32, x_dst(d), n, m);
  return true;
}

// These have no 32-bit form: rare.
bool Visitor::logical_not(bool sf, MicroOp op64, Reg d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerLogical);
  const Slot result = sf ? x_dst(d) : b_.temp();
  b_.emit(op64, result, n, m);
  if (!sf) b_.mov32(x_dst(d), result);
  return true;
}

bool Visitor::AND_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return logical(sf, MicroOp::and64, MicroOp::and32, d, x_src(n), shifted(sf, m, shift, i));
}

bool Visitor::BIC_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return logical_not(sf, MicroOp::bic64, d, x_src(n), shifted(sf, m, shift, i));
}

bool Visitor::ORR_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  if (n == 31) {  // MOV, and MOV of a shifted register
    set_class(InsnClass::kIntegerLogical);
    if (d != 31) shift_imm(sf, x_dst(d), x_src(m), shift, i);
    return true;
  }
  return logical(sf, MicroOp::or64, MicroOp::or32, d, x_src(n), shifted(sf, m, shift, i));
}

bool Visitor::ORN_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  const Slot source = shifted(sf, m, shift, i);
  if (n == 31) {  // MVN
    set_class(InsnClass::kIntegerLogical);
    b_.emit(sf ? MicroOp::xori64 : MicroOp::xori32, x_dst(d), source, 0, 0,
            sf ? ~uint64_t{0} : 0xffffffff);
    return true;
  }
  return logical_not(sf, MicroOp::orn64, d, x_src(n), source);
}

bool Visitor::EOR_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return logical(sf, MicroOp::xor64, MicroOp::xor32, d, x_src(n), shifted(sf, m, shift, i));
}

bool Visitor::EON_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return logical_not(sf, MicroOp::eon64, d, x_src(n), shifted(sf, m, shift, i));
}

bool Visitor::ANDS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  if (d == 31 && n == m && i == 0) return logical_flags(sf, d, x_src(n));  // TST Xn, Xn
  const Slot source = shifted(sf, m, shift, i);
  const Slot result = readable_dst(d);
  b_.emit(sf ? MicroOp::and64 : MicroOp::and32, result, x_src(n), source);
  return logical_flags(sf, d, result);
}

bool Visitor::BICS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  const Slot source = shifted(sf, m, shift, i);
  const Slot result = readable_dst(d);
  b_.bic64(result, x_src(n), source);
  if (!sf && d != 31) b_.mov32(result, result);
  return logical_flags(sf, d, result);
}

// --- wide immediate

bool Visitor::MOVN(bool sf, Imm<2> hw, Imm<16> i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint64_t value = ~(i.zero_extend() << (16 * hw));
  write_konst(d, sf ? value : value & 0xffffffff);
  return true;
}

bool Visitor::MOVZ(bool, Imm<2> hw, Imm<16> i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  write_konst(d, i.zero_extend() << (16 * hw));
  return true;
}

bool Visitor::MOVK(bool sf, Imm<2> hw, Imm<16> i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (d == 31) return true;
  const uint64_t keep = ~(uint64_t{0xffff} << (16 * hw)) & (sf ? ~uint64_t{0} : 0xffffffff);
  const uint64_t insert = i.zero_extend() << (16 * hw);
  if (const uint64_t* known = last_konst(x_dst(d))) {  // MOVZ and MOVK
    b_.konst(x_dst(d), (*known & keep) | insert);
    return true;
  }
  b_.andi64(x_dst(d), x_src(d), keep);
  if (insert != 0) b_.ori64(x_dst(d), x_src(d), insert);
  return true;
}

}  // namespace gpusim::a64
