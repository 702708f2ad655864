// Address generation and bit manipulation (Zba, Zbb, Zbc, Zbs).
#include "device_sim/uir/helpers.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

using enum CompareRelation;

// A mask of a register of RV32.
constexpr uint64_t kLowWord = 0xffffffff;

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
  const Widths op{MicroOp::add_lsl64, MicroOp::add_uxtw64, MicroOp::add_lsl32};
  b_.emit(pick(op, uw), x_dst(d), x_src(m), x_src(n), 0, shift);
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
// The inverted operand of RV32 has zeroes above it.
bool Visitor::ORN(Reg m, Reg n, Reg d) {
  if (!is_rv32_) return logic(MicroOp::orn64, d, x_src(n), x_src(m));
  const Slot inverted = b_.temp();
  b_.xori64(inverted, x_src(m), kLowWord);
  return logic(MicroOp::or64, d, x_src(n), inverted);
}
bool Visitor::XNOR(Reg m, Reg n, Reg d) {
  if (!is_rv32_) return logic(MicroOp::eon64, d, x_src(n), x_src(m));
  const Slot inverted = b_.temp();
  b_.xori64(inverted, x_src(m), kLowWord);
  return logic(MicroOp::xor64, d, x_src(n), inverted);
}

bool Visitor::count(bool w, Reg d, Slot a) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(pick({MicroOp::clz64, MicroOp::clz32, MicroOp::clz32}, w), x_dst(d), a);
  return true;
}
bool Visitor::CLZ(Reg n, Reg d, bool w) { return count(w, d, x_src(n)); }
bool Visitor::CTZ(Reg n, Reg d, bool w) {
  const Slot reversed = b_.temp();
  b_.emit(pick({MicroOp::rbit64, MicroOp::rbit32, MicroOp::rbit32}, w), reversed, x_src(n));
  return count(w, d, reversed);
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

bool Visitor::extreme(CompareRelation relation, bool maximum, Reg d, Reg n, Reg m) {
  set_class(InsnClass::kIntegerLogical);
  const Slot a = x_src(n), b = x_src(m);
  b_.sel_cmp(x_dst(d), maximum ? b : a, maximum ? a : b, a, b, comparison(relation).pack());
  return true;
}
bool Visitor::MIN(Reg m, Reg n, Reg d) { return extreme(kLessSigned, false, d, n, m); }
bool Visitor::MINU(Reg m, Reg n, Reg d) { return extreme(kLessUnsigned, false, d, n, m); }
bool Visitor::MAX(Reg m, Reg n, Reg d) { return extreme(kLessSigned, true, d, n, m); }
bool Visitor::MAXU(Reg m, Reg n, Reg d) { return extreme(kLessUnsigned, true, d, n, m); }

bool Visitor::SEXT_B(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(is_rv32_ ? MicroOp::sbf32 : MicroOp::sbf64, x_dst(d), x_src(n), 0, 0, 56, 56);
  return true;
}
bool Visitor::SEXT_H(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(is_rv32_ ? MicroOp::sbf32 : MicroOp::sbf64, x_dst(d), x_src(n), 0, 0, 48, 48);
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
  b_.emit(pick({MicroOp::ror64, MicroOp::ror32, MicroOp::ror32}, w), rotated, n, amount);
  if (w) write_word(x_dst(d), rotated);
  return true;
}
bool Visitor::ROR(Reg m, Reg n, Reg d, bool w) { return rotate(w, d, x_src(n), x_src(m)); }
bool Visitor::ROL(Reg m, Reg n, Reg d, bool w) {
  const Slot amount = b_.temp();
  b_.sub64(amount, kZero, x_src(m));
  return rotate(w, d, x_src(n), amount);
}
bool Visitor::RORI(Imm<6> i, Reg n, Reg d, bool w) {
  return shift_imm({MicroOp::rori64, MicroOp::rori32, MicroOp::rori32}, w, d, n, i);
}
bool Visitor::ORC_B(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.vcmtst(x_dst(d), x_src(n), x_src(n), 0, 0);
  return true;
}
bool Visitor::REV8(bool, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(is_rv32_ ? MicroOp::rev32 : MicroOp::rev64, x_dst(d), x_src(n));
  return true;
}

// --- Zbc. The product of RV32 has no more than 63 bits.

bool Visitor::CLMUL(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const Slot low = is_rv32_ ? b_.temp() : x_dst(d);
  b_.help2(low, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_low));
  if (is_rv32_) b_.mov32(x_dst(d), low);
  return true;
}
bool Visitor::product_bits(uint8_t from, Reg d, Reg n, Reg m) {
  const Slot product = b_.temp();
  b_.help2(product, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_low));
  b_.ubfx(x_dst(d), product, kLowWord, from);
  return true;
}
bool Visitor::CLMULH(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (is_rv32_) return product_bits(32, d, n, m);
  b_.help2(x_dst(d), x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_high));
  return true;
}
// Bits 126 to 63 of the product; of RV32, 62 to 31.
bool Visitor::CLMULR(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  if (is_rv32_) return product_bits(31, d, n, m);
  const Slot low = b_.temp(), high = b_.temp();
  b_.help2(low, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_low));
  b_.help2(high, x_src(n), x_src(m), 0, 0, static_cast<uint16_t>(Helper2::pmull_high));
  b_.extr64(x_dst(d), high, low, 63);
  return true;
}

// --- Zbs

Slot Visitor::bit_of(Reg m) {
  const Slot t = b_.temp();
  b_.emit(is_rv32_ ? MicroOp::lsl32 : MicroOp::lsl64, t, konst(1), x_src(m));
  return t;
}
bool Visitor::BCLR(Reg m, Reg n, Reg d) { return logic(MicroOp::bic64, d, x_src(n), bit_of(m)); }
bool Visitor::BINV(Reg m, Reg n, Reg d) { return logic(MicroOp::xor64, d, x_src(n), bit_of(m)); }
bool Visitor::BSET(Reg m, Reg n, Reg d) { return logic(MicroOp::or64, d, x_src(n), bit_of(m)); }
bool Visitor::BEXT(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  b_.emit(is_rv32_ ? MicroOp::lsr32 : MicroOp::lsr64, t, x_src(n), x_src(m));
  b_.andi64(x_dst(d), t, 1);
  return true;
}
bool Visitor::BCLRI(Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.andi64(x_dst(d), x_src(n), in_register(~(uint64_t{1} << i)));
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
