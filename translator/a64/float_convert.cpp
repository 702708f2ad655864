// Moves and conversions between floating-point and general-purpose registers (C4.1.90).
#include "translator/a64/float_visitor.h"

namespace gpusim::a64 {

bool FloatVisitor::to_int(bool sf, uint32_t f, FpRounding rounding, bool is_signed, Reg n, Reg d,
                          uint32_t fraction_bits) {
  set_arithmetic_class(format(f));
  b_.f2i(x_dst(d), v_low(n), f2i_aux(format(f), rounding, is_signed, sf), fraction_bits);
  return true;
}
bool FloatVisitor::FCVTNS(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kNearestEven, true, n, d);
}
bool FloatVisitor::FCVTNU(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kNearestEven, false, n, d);
}
bool FloatVisitor::FCVTAS(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kNearestAway, true, n, d);
}
bool FloatVisitor::FCVTAU(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kNearestAway, false, n, d);
}
bool FloatVisitor::FCVTPS(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kPlusInf, true, n, d);
}
bool FloatVisitor::FCVTPU(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kPlusInf, false, n, d);
}
bool FloatVisitor::FCVTMS(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kMinusInf, true, n, d);
}
bool FloatVisitor::FCVTMU(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kMinusInf, false, n, d);
}
bool FloatVisitor::FCVTZS_int(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kZero, true, n, d);
}
bool FloatVisitor::FCVTZU_int(bool sf, uint32_t f, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kZero, false, n, d);
}
bool FloatVisitor::FCVTZS_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kZero, true, n, d, 64 - scale);
}
bool FloatVisitor::FCVTZU_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d) {
  return to_int(sf, f, FpRounding::kZero, false, n, d, 64 - scale);
}

bool FloatVisitor::from_int(bool sf, uint32_t f, bool is_signed, Reg n, Reg d,
                            uint32_t fraction_bits) {
  set_arithmetic_class(format(f));
  b_.i2f(v_low(d), x_src(n), i2f_aux(format(f), is_signed, sf), fraction_bits);
  return done(d);
}
bool FloatVisitor::SCVTF_int(bool sf, uint32_t f, Reg n, Reg d) {
  return from_int(sf, f, true, n, d);
}
bool FloatVisitor::UCVTF_int(bool sf, uint32_t f, Reg n, Reg d) {
  return from_int(sf, f, false, n, d);
}
bool FloatVisitor::SCVTF_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d) {
  return from_int(sf, f, true, n, d, 64 - scale);
}
bool FloatVisitor::UCVTF_fix(bool sf, uint32_t f, uint32_t scale, Reg n, Reg d) {
  return from_int(sf, f, false, n, d, 64 - scale);
}

bool FloatVisitor::FMOV_to_gpr(bool, uint32_t f, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  cut(format(f), x_dst(d), v_low(n));
  return true;
}
bool FloatVisitor::FMOV_from_gpr(bool, uint32_t f, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  cut(format(f), v_low(d), x_src(n));
  return done(d);
}
bool FloatVisitor::FMOV_top_to_gpr(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.mov(x_dst(d), v_high(n));
  return true;
}
bool FloatVisitor::FMOV_top_from_gpr(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.mov(v_high(d), x_src(n));
  return true;
}

// The micro-op's bit 32 is the flag Z; N, C and V are cleared.
bool FloatVisitor::FJCVTZS(Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF64);
  const Slot t = b_.temp();
  b_.fmisc1(t, v_low(n), fp_aux(FpFormat::kF64, FpMisc1::kJscvt));
  b_.mov32(x_dst(d), t);
  b_.ubfx(kNzcv, t, 4, 30);
  return true;
}

}  // namespace gpusim::a64
