// Conditional compare and select, and the instructions that write flags directly (C4.1.89).
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

// Truth tables over flags f = N<<3 | Z<<2 | C<<1 | V.
constexpr uint16_t kTrueIfN = 0xff00, kTrueIfZ = 0xf0f0, kTrueIfC = 0xcccc, kTrueIfV = 0xaaaa;
constexpr uint16_t negate(uint16_t mask) { return static_cast<uint16_t>(~mask); }

}  // namespace

bool Visitor::conditional_compare(bool, Slot new_flags, uint32_t cond, uint32_t nzcv) {
  set_class(InsnClass::kIntegerComparison);
  const Slot otherwise = konst(nzcv);
  b_.csel64(kNzcv, new_flags, otherwise, kNzcv, condition_mask(cond));
  return true;
}

bool Visitor::CCMN_reg(bool sf, Reg m, Imm<4> cond, Reg n, Imm<4> nzcv) {
  const Slot flags = b_.temp();
  b_.emit(sf ? MicroOp::fl_add64 : MicroOp::fl_add32, flags, x_src(n), x_src(m));
  return conditional_compare(sf, flags, cond, nzcv);
}
bool Visitor::CCMN_imm(bool sf, Imm<5> i, Imm<4> cond, Reg n, Imm<4> nzcv) {
  const Slot flags = b_.temp();
  flags_add_imm(sf, flags, x_src(n), i);
  return conditional_compare(sf, flags, cond, nzcv);
}
bool Visitor::CCMP_reg(bool sf, Reg m, Imm<4> cond, Reg n, Imm<4> nzcv) {
  const Slot flags = b_.temp();
  b_.emit(sf ? MicroOp::fl_sub64 : MicroOp::fl_sub32, flags, x_src(n), x_src(m));
  return conditional_compare(sf, flags, cond, nzcv);
}
bool Visitor::CCMP_imm(bool sf, Imm<5> i, Imm<4> cond, Reg n, Imm<4> nzcv) {
  const Slot flags = b_.temp();
  flags_sub_imm(sf, flags, x_src(n), i);
  return conditional_compare(sf, flags, cond, nzcv);
}

bool Visitor::conditional_select(MicroOp op, Reg m, uint32_t cond, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(op, x_dst(d), x_src(n), x_src(m), kNzcv).set_imm16(condition_mask(cond));
  return true;
}

bool Visitor::CSEL(bool sf, Reg m, Imm<4> cond, Reg n, Reg d) {
  return conditional_select(sf ? MicroOp::csel64 : MicroOp::csel32, m, cond, n, d);
}
bool Visitor::CSINC(bool sf, Reg m, Imm<4> cond, Reg n, Reg d) {
  if (m == 31 && n == 31) {  // CSET, of the opposite condition
    set_class(InsnClass::kIntegerLogical);
    b_.set_if(x_dst(d), kNzcv, negate(condition_mask(cond)));
    return true;
  }
  return conditional_select(sf ? MicroOp::csinc64 : MicroOp::csinc32, m, cond, n, d);
}
bool Visitor::CSINV(bool sf, Reg m, Imm<4> cond, Reg n, Reg d) {
  return conditional_select(sf ? MicroOp::csinv64 : MicroOp::csinv32, m, cond, n, d);
}
bool Visitor::CSNEG(bool sf, Reg m, Imm<4> cond, Reg n, Reg d) {
  return conditional_select(sf ? MicroOp::csneg64 : MicroOp::csneg32, m, cond, n, d);
}

// --- flag manipulation (FEAT_FlagM, FEAT_FlagM2)

bool Visitor::RMIF(Imm<6> i, Reg n, Imm<4> mask) {
  set_class(InsnClass::kIntegerLogical);
  if (i <= 60) {
    b_.bfxil64(kNzcv, x_src(n), kNzcv, mask, static_cast<uint8_t>(i));
  } else {
    const Slot t = b_.temp();
    b_.rori64(t, x_src(n), i);
    b_.bfxil64(kNzcv, t, kNzcv, mask);
  }
  return true;
}

// N and Z as of the low bits; V where the bit above them differs from their top one; C stays.
bool Visitor::set_sign_flags(Reg n, unsigned bits) {
  set_class(InsnClass::kIntegerComparison);
  const Slot top = b_.temp(), overflow = b_.temp(), carry = b_.temp();
  b_.lsli32(top, x_src(n), 32 - bits);
  b_.lsri64(overflow, x_src(n), 1);
  b_.xor64(overflow, overflow, x_src(n));
  b_.ubfx(overflow, overflow, 1, static_cast<uint8_t>(bits - 1));
  b_.andi64(carry, kNzcv, 2);
  b_.or64(overflow, overflow, carry);
  b_.fl_nz32(kNzcv, top);
  b_.or64(kNzcv, kNzcv, overflow);
  return true;
}
bool Visitor::SETF8(Reg n) { return set_sign_flags(n, 8); }
bool Visitor::SETF16(Reg n) { return set_sign_flags(n, 16); }

bool Visitor::CFINV() {
  set_class(InsnClass::kIntegerLogical);
  b_.xori64(kNzcv, kNzcv, 2);
  return true;
}

void Visitor::map_flags(uint16_t n, uint16_t z, uint16_t c, uint16_t v) {
  const Slot sum = b_.temp(), bit = b_.temp();
  b_.set_if(sum, kNzcv, v);
  b_.set_if(bit, kNzcv, c);
  b_.add_lsl64(sum, sum, bit, 1);
  b_.set_if(bit, kNzcv, z);
  b_.add_lsl64(sum, sum, bit, 2);
  b_.set_if(bit, kNzcv, n);
  b_.add_lsl64(kNzcv, sum, bit, 3);
}

// Floating-point comparison flags to and from the alternative format (J1.1.3).
bool Visitor::XAFLAG() {
  set_class(InsnClass::kIntegerLogical);
  map_flags(negate(kTrueIfC) & negate(kTrueIfZ), kTrueIfZ & kTrueIfC, kTrueIfC | kTrueIfZ,
            negate(kTrueIfC) & kTrueIfZ);
  return true;
}
bool Visitor::AXFLAG() {
  set_class(InsnClass::kIntegerLogical);
  map_flags(0, kTrueIfZ | kTrueIfV, kTrueIfC & negate(kTrueIfV), 0);
  return true;
}

}  // namespace gpusim::a64
