// Address generation and bit manipulation (Zba, Zbb, Zbc, Zbs).
#include "device_sim/uir/compare.h"
#include "device_sim/uir/helpers.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

constexpr uint8_t kSigned = CompareKind{CompareRelation::kLessSigned, false, false}.pack();
constexpr uint8_t kUnsigned = CompareKind{CompareRelation::kLessUnsigned, false, false}.pack();

}  // namespace

Slot Visitor::low_word(bool w, Slot a) {
  if (!w) return a;
  const Slot t = b_.temp();
  b_.mov32(t, a);
  return t;
}

// --- Zba

bool Visitor::add_shifted(uint32_t shift, bool uw, Reg d, Reg n, Reg m) {
  set_class(InsnClass::kIntegerArithmetic);
  b_.emit(uw ? MicroOp::add_uxtw64 : MicroOp::add_lsl64, x_dst(d), x_src(m), x_src(n), 0, shift);
  return true;
}
bool Visitor::SH1ADD(Reg m, Reg n, Reg d, bool uw) { return add_shifted(1, uw, d, n, m); }
bool Visitor::SH2ADD(Reg m, Reg n, Reg d, bool uw) { return add_shifted(2, uw, d, n, m); }
bool Visitor::SH3ADD(Reg m, Reg n, Reg d, bool uw) { return add_shifted(3, uw, d, n, m); }
bool Visitor::ADD_UW(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (m == 0) {  // ZEXT.W
    b_.mov32(x_dst(d), x_src(n));
    return true;
  }
  b_.add_uxtw64(x_dst(d), x_src(m), x_src(n), 0);
  return true;
}
bool Visitor::SLLI_UW(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.ubfiz(x_dst(d), x_src(n), uint64_t{0xffffffff} << i, static_cast<uint8_t>(i.value));
  return true;
}

// --- Zbb

bool Visitor::ANDN(Reg m, Reg n, Reg d) { return logic(MicroOp::bic64, d, x_src(n), x_src(m)); }
bool Visitor::ORN(Reg m, Reg n, Reg d) { return logic(MicroOp::orn64, d, x_src(n), x_src(m)); }
bool Visitor::XNOR(Reg m, Reg n, Reg d) { return logic(MicroOp::eon64, d, x_src(n), x_src(m)); }

bool Visitor::count(MicroOp op64, MicroOp op32, bool w, Reg d, Slot a) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(w ? op32 : op64, x_dst(d), a);
  return true;
}
bool Visitor::CLZ(Reg n, Reg d, bool w) {
  return count(MicroOp::clz64, MicroOp::clz32, w, d, x_src(n));
}
bool Visitor::CTZ(Reg n, Reg d, bool w) {
  const Slot reversed = b_.temp();
  b_.emit(w ? MicroOp::rbit32 : MicroOp::rbit64, reversed, x_src(n));
  return count(MicroOp::clz64, MicroOp::clz32, w, d, reversed);
}
// The bytes' counts add up in the top byte of a product.
bool Visitor::CPOP(Reg n, Reg d, bool w) {
  set_class(InsnClass::kIntegerLogical);
  const Slot counts = b_.temp();
  b_.vcnt(counts, low_word(w, x_src(n)));
  b_.mul64(counts, counts, konst(0x0101010101010101));
  b_.lsri64(x_dst(d), counts, 56);
  return true;
}

bool Visitor::extreme(uint8_t kind, bool maximum, Reg d, Reg n, Reg m) {
  set_class(InsnClass::kIntegerLogical);
  const Slot a = x_src(n), b = x_src(m);
  b_.sel_cmp(x_dst(d), maximum ? b : a, maximum ? a : b, a, b, kind);
  return true;
}
bool Visitor::MIN(Reg m, Reg n, Reg d) { return extreme(kSigned, false, d, n, m); }
bool Visitor::MINU(Reg m, Reg n, Reg d) { return extreme(kUnsigned, false, d, n, m); }
bool Visitor::MAX(Reg m, Reg n, Reg d) { return extreme(kSigned, true, d, n, m); }
bool Visitor::MAXU(Reg m, Reg n, Reg d) { return extreme(kUnsigned, true, d, n, m); }

bool Visitor::SEXT_B(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.sbf64(x_dst(d), x_src(n), 56, 56);
  return true;
}
bool Visitor::SEXT_H(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.sbf64(x_dst(d), x_src(n), 48, 48);
  return true;
}
bool Visitor::ZEXT_H(Reg n, Reg d, bool) {
  set_class(InsnClass::kIntegerLogical);
  b_.andi64(x_dst(d), x_src(n), 0xffff);
  return true;
}

bool Visitor::rotate(bool w, Reg d, Slot n, Slot amount) {
  set_class(InsnClass::kIntegerLogical);
  const Slot rotated = w ? b_.temp() : x_dst(d);
  b_.emit(w ? MicroOp::ror32 : MicroOp::ror64, rotated, n, amount);
  if (w) sign_extend_word(x_dst(d), rotated);
  return true;
}
bool Visitor::ROR(Reg m, Reg n, Reg d, bool w) { return rotate(w, d, x_src(n), x_src(m)); }
bool Visitor::ROL(Reg m, Reg n, Reg d, bool w) {
  const Slot amount = b_.temp();
  b_.sub64(amount, kZero, x_src(m));
  return rotate(w, d, x_src(n), amount);
}
bool Visitor::RORI(Imm<6> i, Reg n, Reg d, bool w) {
  return shift_imm(MicroOp::rori64, MicroOp::rori32, w, d, n, i);
}
bool Visitor::ORC_B(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.vcmtst(x_dst(d), x_src(n), x_src(n), 0, 0);
  return true;
}
bool Visitor::REV8(bool, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.rev64(x_dst(d), x_src(n));
  return true;
}

// --- Zbc

bool Visitor::CLMUL(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  b_.help2(x_dst(d), x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_low));
  return true;
}
bool Visitor::CLMULH(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  b_.help2(x_dst(d), x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_high));
  return true;
}
// Bits 126 to 63 of the product.
bool Visitor::CLMULR(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot low = b_.temp(), high = b_.temp();
  b_.help2(low, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_low));
  b_.help2(high, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_high));
  b_.extr64(x_dst(d), high, low, 63);
  return true;
}

// --- Zbs

Slot Visitor::bit_of(Reg m) {
  const Slot t = b_.temp();
  b_.lsl64(t, konst(1), x_src(m));
  return t;
}
bool Visitor::BCLR(Reg m, Reg n, Reg d) { return logic(MicroOp::bic64, d, x_src(n), bit_of(m)); }
bool Visitor::BINV(Reg m, Reg n, Reg d) { return logic(MicroOp::xor64, d, x_src(n), bit_of(m)); }
bool Visitor::BSET(Reg m, Reg n, Reg d) { return logic(MicroOp::or64, d, x_src(n), bit_of(m)); }
bool Visitor::BEXT(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  b_.lsr64(t, x_src(n), x_src(m));
  b_.andi64(x_dst(d), t, 1);
  return true;
}
bool Visitor::BCLRI(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.andi64(x_dst(d), x_src(n), ~(uint64_t{1} << i));
  return true;
}
bool Visitor::BEXTI(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.ubfx(x_dst(d), x_src(n), 1, static_cast<uint8_t>(i.value));
  return true;
}
bool Visitor::BINVI(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.xori64(x_dst(d), x_src(n), uint64_t{1} << i);
  return true;
}
bool Visitor::BSETI(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.ori64(x_dst(d), x_src(n), uint64_t{1} << i);
  return true;
}

}  // namespace gpusim::riscv
