// Scalar floating point but conversions with general-purpose registers (C4.1.90).
#include "device_sim/uir/helpers.h"
#include "translator/a64/float_visitor.h"

namespace gpusim::a64 {

void FloatVisitor::cut(FpFormat f, Slot d, Slot a) {
  if (f == FpFormat::kF64) {
    b_.mov(d, a);
  } else if (f == FpFormat::kF32) {
    b_.mov32(d, a);
  } else {
    b_.andi64(d, a, 0xffff);
  }
}

Slot FloatVisitor::negated(FpFormat f, Slot a) {
  const Slot t = b_.temp();
  b_.xori64(t, a, sign_bit(f));
  return t;
}

void FloatVisitor::set_class_of(Fp2 k, FpFormat f) {
  if (k >= Fp2::kEq) {
    set_class(InsnClass::kFloatComparison);
  } else if (k == Fp2::kDiv) {
    set_class(f == FpFormat::kF64 ? InsnClass::kDoubleDivision : InsnClass::kFloatDivision);
  } else {
    set_arithmetic_class(f);
  }
}

void FloatVisitor::scalar2(Fp2 k, FpFormat f, Slot d, Slot a, Slot b) {
  constexpr MicroOp k32[] = {MicroOp::fadd32, MicroOp::fsub32, MicroOp::fmul32, MicroOp::fdiv32};
  constexpr MicroOp k64[] = {MicroOp::fadd64, MicroOp::fsub64, MicroOp::fmul64, MicroOp::fdiv64};
  const int i = static_cast<int>(k);
  if (k <= Fp2::kDiv && f != FpFormat::kF16) {
    b_.emit(f == FpFormat::kF32 ? k32[i] : k64[i], d, a, b).e = kFpState;
  } else if (k == Fp2::kAbsDiff && f != FpFormat::kF16) {
    const Slot t = b_.temp();
    b_.emit(f == FpFormat::kF32 ? MicroOp::fsub32 : MicroOp::fsub64, t, a, b).e = kFpState;
    b_.andi64(d, t, sign_bit(f) - 1);
  } else if (k <= Fp2::kAbsDiff) {
    b_.fmisc2(d, a, b, fp_aux(f, k));
  } else if (k <= Fp2::kMaxNum) {
    b_.fminmax(d, a, b, fp_aux(f, i - static_cast<int>(Fp2::kMin)));
  } else {
    // All ones or zero by the flags of a comparison; that for equality is a quiet one.
    if (k >= Fp2::kAbsGe) {
      const Slot x = b_.temp(), y = b_.temp();
      b_.andi64(x, a, sign_bit(f) - 1);
      b_.andi64(y, b, sign_bit(f) - 1);
      a = x;
      b = y;
    }
    constexpr uint32_t kEqual = 0, kGreaterEqual = 10, kGreater = 12;  // condition codes
    const uint32_t cond = k == Fp2::kEq                       ? kEqual
                          : k == Fp2::kGe || k == Fp2::kAbsGe ? kGreaterEqual
                                                              : kGreater;
    const Slot t = b_.temp();
    b_.fcmp(t, a, b, fp_aux(f, k != Fp2::kEq));
    b_.set_if(t, t, condition_mask(cond));
    b_.sub64(t, kZero, t);
    cut(f, d, t);
  }
}

bool FloatVisitor::arithmetic2(Fp2 k, uint32_t f, Reg m, Reg n, Reg d) {
  set_class_of(k, format(f));
  scalar2(k, format(f), v_low(d), v_low(n), v_low(m));
  return done(d);
}
bool FloatVisitor::FMUL(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kMul, f, m, n, d);
}
bool FloatVisitor::FDIV(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kDiv, f, m, n, d);
}
bool FloatVisitor::FADD(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kAdd, f, m, n, d);
}
bool FloatVisitor::FSUB(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kSub, f, m, n, d);
}
bool FloatVisitor::FMAX(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kMax, f, m, n, d);
}
bool FloatVisitor::FMIN(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kMin, f, m, n, d);
}
bool FloatVisitor::FMAXNM(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kMaxNum, f, m, n, d);
}
bool FloatVisitor::FMINNM(uint32_t f, Reg m, Reg n, Reg d) {
  return arithmetic2(Fp2::kMinNum, f, m, n, d);
}
// The negation comes after the product, NaNs included.
bool FloatVisitor::FNMUL(uint32_t f, Reg m, Reg n, Reg d) {
  set_arithmetic_class(format(f));
  scalar2(Fp2::kMul, format(f), v_low(d), v_low(n), v_low(m));
  b_.xori64(v_low(d), v_low(d), sign_bit(format(f)));
  return done(d);
}

void FloatVisitor::muladd(FpFormat f, Slot d, Slot a, Slot b, Slot c) {
  if (f == FpFormat::kF16) {
    b_.fmisc3(d, a, b, c, fp_aux(f, FpMisc3::kMulAdd));
  } else {
    b_.emit(f == FpFormat::kF32 ? MicroOp::fma32 : MicroOp::fma64, d, a, b, c).e = kFpState;
  }
}
// Negations come before the operation: a NaN operand changes sign, too.
bool FloatVisitor::fused(uint32_t f, bool negate_product, bool negate_addend, Reg m, Reg a, Reg n,
                         Reg d) {
  const FpFormat fmt = format(f);
  set_arithmetic_class(fmt);
  const Slot x = negate_product ? negated(fmt, v_low(n)) : v_low(n);
  const Slot addend = negate_addend ? negated(fmt, v_low(a)) : v_low(a);
  muladd(fmt, v_low(d), x, v_low(m), addend);
  return done(d);
}
bool FloatVisitor::FMADD(uint32_t f, Reg m, Reg a, Reg n, Reg d) {
  return fused(f, false, false, m, a, n, d);
}
bool FloatVisitor::FMSUB(uint32_t f, Reg m, Reg a, Reg n, Reg d) {
  return fused(f, true, false, m, a, n, d);
}
bool FloatVisitor::FNMADD(uint32_t f, Reg m, Reg a, Reg n, Reg d) {
  return fused(f, true, true, m, a, n, d);
}
bool FloatVisitor::FNMSUB(uint32_t f, Reg m, Reg a, Reg n, Reg d) {
  return fused(f, false, true, m, a, n, d);
}

// --- one source

bool FloatVisitor::FMOV_reg(uint32_t f, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  cut(format(f), v_low(d), v_low(n));
  return done(d);
}
bool FloatVisitor::FABS(uint32_t f, Reg n, Reg d) {
  set_arithmetic_class(format(f));
  b_.andi64(v_low(d), v_low(n), sign_bit(format(f)) - 1);
  return done(d);
}
bool FloatVisitor::FNEG(uint32_t f, Reg n, Reg d) {
  const FpFormat fmt = format(f);
  set_arithmetic_class(fmt);
  if (fmt == FpFormat::kF16) {
    const Slot t = negated(fmt, v_low(n));
    cut(fmt, v_low(d), t);
  } else {
    b_.emit(fmt == FpFormat::kF32 ? MicroOp::xori32 : MicroOp::xori64, v_low(d), v_low(n), 0, 0,
            sign_bit(fmt));
  }
  return done(d);
}
bool FloatVisitor::FSQRT(uint32_t f, Reg n, Reg d) {
  const FpFormat fmt = format(f);
  set_class(InsnClass::kSpecialFunction);
  if (fmt == FpFormat::kF16) {
    b_.fmisc1(v_low(d), v_low(n), fp_aux(fmt, FpMisc1::kSqrt));
  } else {
    b_.emit(fmt == FpFormat::kF32 ? MicroOp::fsqrt32 : MicroOp::fsqrt64, v_low(d), v_low(n)).e =
        kFpState;
  }
  return done(d);
}
bool FloatVisitor::FCVT(uint32_t f, uint32_t to, Reg n, Reg d) {
  set_arithmetic_class(f == 1 || to == 1 ? FpFormat::kF64 : FpFormat::kF32);
  b_.fconvert(v_low(d), v_low(n), fp_aux(format(f), format(to)));
  return done(d);
}

bool FloatVisitor::round(uint32_t f, FpRounding rounding, Reg n, Reg d) {
  set_arithmetic_class(format(f));
  b_.fround(v_low(d), v_low(n), fp_aux(format(f), rounding));
  return done(d);
}
bool FloatVisitor::FRINTN(uint32_t f, Reg n, Reg d) {
  return round(f, FpRounding::kNearestEven, n, d);
}
bool FloatVisitor::FRINTP(uint32_t f, Reg n, Reg d) { return round(f, FpRounding::kPlusInf, n, d); }
bool FloatVisitor::FRINTM(uint32_t f, Reg n, Reg d) {
  return round(f, FpRounding::kMinusInf, n, d);
}
bool FloatVisitor::FRINTZ(uint32_t f, Reg n, Reg d) { return round(f, FpRounding::kZero, n, d); }
bool FloatVisitor::FRINTA(uint32_t f, Reg n, Reg d) {
  return round(f, FpRounding::kNearestAway, n, d);
}
bool FloatVisitor::FRINTX(uint32_t f, Reg n, Reg d) {
  return round(f, FpRounding::kFpcrExact, n, d);
}
bool FloatVisitor::FRINTI(uint32_t f, Reg n, Reg d) { return round(f, FpRounding::kFpcr, n, d); }

// To a value that fits a 32- or 64-bit integer. The helper works on all elements, so those above a
// single are cleared first.
bool FloatVisitor::round_n(uint32_t f, FpRounding rounding, uint32_t int_bits, Reg n, Reg d) {
  const FpFormat fmt = format(f);
  set_arithmetic_class(fmt);
  const Slot t = b_.temp();
  cut(fmt, t, v_low(n));
  b_.fhelp1(v_low(d), t, static_cast<uint8_t>(fmt),
            helper_number(FpHelper1::each_fround_n) | uint64_t{fp_aux(fmt, rounding)} << 16 |
                uint64_t{int_bits} << 24);
  return done(d);
}
bool FloatVisitor::FRINT32Z(uint32_t f, Reg n, Reg d) {
  return round_n(f, FpRounding::kZero, 32, n, d);
}
bool FloatVisitor::FRINT32X(uint32_t f, Reg n, Reg d) {
  return round_n(f, FpRounding::kFpcr, 32, n, d);
}
bool FloatVisitor::FRINT64Z(uint32_t f, Reg n, Reg d) {
  return round_n(f, FpRounding::kZero, 64, n, d);
}
bool FloatVisitor::FRINT64X(uint32_t f, Reg n, Reg d) {
  return round_n(f, FpRounding::kFpcr, 64, n, d);
}

// --- comparison, selection, immediate

bool FloatVisitor::compare(uint32_t f, bool signalling, Slot n, Slot m) {
  set_class(InsnClass::kFloatComparison);
  b_.fcmp(kNzcv, n, m, fp_aux(format(f), signalling));
  return true;
}
bool FloatVisitor::FCMP(uint32_t f, Reg m, Reg n) { return compare(f, false, v_low(n), v_low(m)); }
bool FloatVisitor::FCMP_zero(uint32_t f, Reg n) { return compare(f, false, v_low(n), kZero); }
bool FloatVisitor::FCMPE(uint32_t f, Reg m, Reg n) { return compare(f, true, v_low(n), v_low(m)); }
bool FloatVisitor::FCMPE_zero(uint32_t f, Reg n) { return compare(f, true, v_low(n), kZero); }

// Where the condition fails nothing is compared: no exception either, so zeros take the operands'
// place.
bool FloatVisitor::compare_if(uint32_t f, bool signalling, Slot n, Slot m, uint32_t cond,
                              uint32_t nzcv) {
  const uint16_t mask = condition_mask(cond);
  if (mask == 0xffff) return compare(f, signalling, n, m);
  set_class(InsnClass::kFloatComparison);
  const Slot x = b_.temp(), y = b_.temp();
  b_.csel64(x, n, kZero, kNzcv, mask);
  b_.csel64(y, m, kZero, kNzcv, mask);
  b_.fcmp(x, x, y, fp_aux(format(f), signalling));
  b_.konst(y, nzcv);
  b_.csel64(kNzcv, x, y, kNzcv, mask);
  return true;
}
bool FloatVisitor::FCCMP(uint32_t f, Reg m, uint32_t cond, Reg n, uint32_t nzcv) {
  return compare_if(f, false, v_low(n), v_low(m), cond, nzcv);
}
bool FloatVisitor::FCCMPE(uint32_t f, Reg m, uint32_t cond, Reg n, uint32_t nzcv) {
  return compare_if(f, true, v_low(n), v_low(m), cond, nzcv);
}

bool FloatVisitor::FCSEL(uint32_t f, Reg m, uint32_t cond, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const FpFormat fmt = format(f);
  const uint16_t mask = condition_mask(cond);
  if (fmt == FpFormat::kF32) {
    b_.csel32(v_low(d), v_low(n), v_low(m), kNzcv, mask);
  } else {
    b_.csel64(v_low(d), v_low(n), v_low(m), kNzcv, mask);
    if (fmt == FpFormat::kF16) cut(fmt, v_low(d), v_low(d));
  }
  return done(d);
}

uint64_t FloatVisitor::expand_imm(FpFormat f, uint32_t imm8) {
  constexpr int kExponentBits[] = {5, 8, 11};
  const int exponent_bits = kExponentBits[static_cast<int>(f)];
  const uint64_t b6 = imm8 >> 6 & 1;
  // NOT(b6), then b6 replicated, then two bits of the immediate; four bits of fraction.
  const uint64_t replicated = b6 ? (uint64_t{1} << (exponent_bits - 3)) - 1 : 0;
  const uint64_t exponent = (b6 ^ 1) << (exponent_bits - 1) | replicated << 2 | (imm8 >> 4 & 3);
  const int fraction_bits = bits(f) - 1 - exponent_bits;
  const uint64_t sign = imm8 >> 7;
  return sign << (bits(f) - 1) | exponent << fraction_bits |
         uint64_t{imm8 & 15} << (fraction_bits - 4);
}
bool FloatVisitor::FMOV_imm(uint32_t f, uint32_t imm8, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.konst(v_low(d), expand_imm(format(f), imm8));
  return done(d);
}

}  // namespace gpusim::a64
