// Floating-point arithmetic and comparisons (F, D, Zfh and Zfa; unprivileged manual, chapters 11,
// 12).
//
// A narrow value lies in its register with ones above it; any other register counts as the
// canonical NaN. Where the block itself has boxed a source, nothing is checked.
#include "device_sim/uir/compare.h"
#include "device_sim/uir/helpers.h"
#include "translator/common/op_shape.h"
#include "translator/riscv/float_state.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

constexpr unsigned format_bits(uint32_t f) { return f == 1 ? 64 : f == 0 ? 32 : 16; }

// Bits of the NZCV that a comparison gives: less N, equal ZC, greater C, unordered CV.
constexpr uint16_t kLess = 1 << 0b1000, kEqual = 1 << 0b0110;

}  // namespace

FpFormat Visitor::format(uint32_t f) {
  return f == 1 ? FpFormat::kF64 : f == 0 ? FpFormat::kF32 : FpFormat::kF16;
}
uint64_t Visitor::box_bits(uint32_t f) { return f == 1 ? 0 : ~uint64_t{0} << format_bits(f); }
uint64_t Visitor::sign_bit(uint32_t f) { return uint64_t{1} << (format_bits(f) - 1); }

// --- boxes

bool Visitor::is_boxed(uint32_t f, Slot slot) const {
  const uint64_t ones = box_bits(f);
  const auto& uops = b_.draft().uops;
  for (auto u = uops.rbegin(); u != uops.rend(); ++u) {
    if (u->d != slot || shape_of(u->op).d.writes == 0) continue;
    return (u->op == MicroOp::ori64 || u->op == MicroOp::konst) && (u->imm & ones) == ones;
  }
  return false;
}

Slot Visitor::unboxed(uint32_t f, Reg r) {
  const Slot value = f_reg(r);
  if (is_double(f) || is_boxed(f, value)) return value;
  const Slot t = b_.temp();
  b_.konst(t, f == 0 ? softfloat::F32::kDefaultNan : softfloat::F16::kDefaultNan);
  constexpr uint8_t kBelow = CompareKind{CompareRelation::kLessUnsigned, false, false}.pack();
  b_.sel_cmpi(t, t, value, value, box_bits(f), kBelow);
  return t;
}

void Visitor::box(uint32_t f, Reg d, Slot value) {
  if (!is_double(f)) b_.ori64(f_reg(d), value, box_bits(f));
}

// --- rounding

constexpr uint32_t kDynamic = 7;

Slot Visitor::state_for(uint32_t r) {
  if (r == kDynamic) return kFpState;
  const Slot t = b_.temp();
  b_.andi64(t, kFpState, ~(uint64_t{7} << kFpModeShift));
  if (const uint64_t mode = fp_mode_bits(r)) b_.ori64(t, t, mode);
  return t;
}
void Visitor::merge_state(Slot state) {
  if (state == kFpState) return;
  b_.andi64(state, state, 0xffffffff);
  b_.or64(kFpState, kFpState, state);
}

// --- arithmetic

bool Visitor::float_binary(MicroOp op32, MicroOp op64, FpMisc2 half, Imm<2> f, Reg m, Reg n,
                           Imm<3> r, Reg d) {
  set_float_class(f);
  const Slot a = unboxed(f, n), b = unboxed(f, m), result = result_slot(f, d);
  const Slot state = state_for(r);
  if (format(f) == FpFormat::kF16) {
    b_.emit(MicroOp::fmisc2, result, a, b, 0, 0, static_cast<uint8_t>(static_cast<int>(half) << 2))
        .e = state;
  } else {
    b_.emit(is_double(f) ? op64 : op32, result, a, b).e = state;
  }
  merge_state(state);
  box(f, d, result);
  return true;
}
bool Visitor::FADD(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return float_binary(MicroOp::fadd32, MicroOp::fadd64, FpMisc2::kAdd, f, m, n, r, d);
}
bool Visitor::FSUB(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return float_binary(MicroOp::fsub32, MicroOp::fsub64, FpMisc2::kSub, f, m, n, r, d);
}
bool Visitor::FMUL(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return float_binary(MicroOp::fmul32, MicroOp::fmul64, FpMisc2::kMul, f, m, n, r, d);
}
bool Visitor::FDIV(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  float_binary(MicroOp::fdiv32, MicroOp::fdiv64, FpMisc2::kDiv, f, m, n, r, d);
  set_class(is_double(f) ? InsnClass::kDoubleDivision : InsnClass::kFloatDivision);
  return true;
}
bool Visitor::FSQRT(Imm<2> f, Reg n, Imm<3> r, Reg d) {
  set_class(InsnClass::kSpecialFunction);
  const Slot a = unboxed(f, n), result = result_slot(f, d), state = state_for(r);
  if (format(f) == FpFormat::kF16) {
    b_.emit(MicroOp::fmisc1, result, a, 0, 0, 0,
            static_cast<uint8_t>(static_cast<int>(FpMisc1::kSqrt) << 2))
        .e = state;
  } else {
    b_.emit(is_double(f) ? MicroOp::fsqrt64 : MicroOp::fsqrt32, result, a).e = state;
  }
  merge_state(state);
  box(f, d, result);
  return true;
}

// The negations are exact, and the sign of a NaN does not reach the result.
bool Visitor::multiply_add(bool negate_product, bool negate_addend, Imm<2> f, Reg a, Reg m, Reg n,
                           Imm<3> r, Reg d) {
  set_float_class(f);
  Slot factor = unboxed(f, n), addend = unboxed(f, a);
  const Slot other = unboxed(f, m), result = result_slot(f, d), state = state_for(r);
  const auto negated = [&](Slot value) {
    const Slot t = b_.temp();
    b_.xori64(t, value, sign_bit(f));
    return t;
  };
  if (negate_product) factor = negated(factor);
  if (negate_addend) addend = negated(addend);
  if (format(f) == FpFormat::kF16) {
    b_.emit(MicroOp::fmisc3, result, factor, other, addend, 0,
            static_cast<uint8_t>(static_cast<int>(FpMisc3::kMulAdd) << 2))
        .e = state;
  } else {
    b_.emit(is_double(f) ? MicroOp::fma64 : MicroOp::fma32, result, factor, other, addend).e =
        state;
  }
  merge_state(state);
  box(f, d, result);
  return true;
}
bool Visitor::FMADD(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return multiply_add(false, false, f, a, m, n, r, d);
}
bool Visitor::FMSUB(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return multiply_add(false, true, f, a, m, n, r, d);
}
bool Visitor::FNMSUB(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return multiply_add(true, false, f, a, m, n, r, d);
}
bool Visitor::FNMADD(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d) {
  return multiply_add(true, true, f, a, m, n, r, d);
}

// --- signs, extremes, comparisons

// d = n with the sign that `sign` has in its place.
bool Visitor::sign_inject(uint32_t f, Reg d, Slot n, Slot sign) {
  const Slot result = result_slot(f, d);
  b_.bfi64(result, sign, n, sign_bit(f), 0);
  box(f, d, result);
  return true;
}
// FMV is FSGNJ of one register twice, and a move.
bool Visitor::FSGNJ(Imm<2> f, Reg m, Reg n, Reg d) {
  set_float_class(f);
  if (n == m) set_class(InsnClass::kIntegerLogical);
  if (n == m && (is_double(f) || is_boxed(f, f_reg(n)))) {
    const Slot result = result_slot(f, d);
    b_.mov(result, f_reg(n));
    box(f, d, result);
    return true;
  }
  const Slot value = unboxed(f, n);
  return sign_inject(f, d, value, n == m ? value : unboxed(f, m));
}
bool Visitor::FSGNJN(Imm<2> f, Reg m, Reg n, Reg d) {
  set_float_class(f);
  const Slot value = unboxed(f, n), sign = b_.temp();
  b_.xori64(sign, n == m ? value : unboxed(f, m), sign_bit(f));
  return sign_inject(f, d, value, sign);
}
bool Visitor::FSGNJX(Imm<2> f, Reg m, Reg n, Reg d) {
  set_float_class(f);
  const Slot value = unboxed(f, n), sign = b_.temp();
  b_.xor64(sign, value, n == m ? value : unboxed(f, m));
  return sign_inject(f, d, value, sign);
}

bool Visitor::min_max(FpMinMax kind, Imm<2> f, Reg m, Reg n, Reg d) {
  set_float_class(f);
  const Slot a = unboxed(f, n), b = unboxed(f, m), result = result_slot(f, d);
  b_.fminmax(result, a, b,
             static_cast<uint8_t>(static_cast<int>(format(f)) | static_cast<int>(kind) << 2));
  box(f, d, result);
  return true;
}
bool Visitor::FMIN(Imm<2> f, Reg m, Reg n, Reg d) {
  return min_max(FpMinMax::kMinimumNumber, f, m, n, d);
}
bool Visitor::FMAX(Imm<2> f, Reg m, Reg n, Reg d) {
  return min_max(FpMinMax::kMaximumNumber, f, m, n, d);
}
bool Visitor::FMINM(Imm<2> f, Reg m, Reg n, Reg d) { return min_max(FpMinMax::kMin, f, m, n, d); }
bool Visitor::FMAXM(Imm<2> f, Reg m, Reg n, Reg d) { return min_max(FpMinMax::kMax, f, m, n, d); }

bool Visitor::compare(uint16_t truth_table, bool signalling, Imm<2> f, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kFloatComparison);
  const Slot a = unboxed(f, n), b = unboxed(f, m), order = b_.temp();
  b_.fcmp(order, a, b, static_cast<uint8_t>(static_cast<int>(format(f)) | signalling << 2));
  b_.set_if(x_dst(d), order, truth_table);
  return true;
}
bool Visitor::FLE(Imm<2> f, Reg m, Reg n, Reg d) {
  return compare(kLess | kEqual, true, f, m, n, d);
}
bool Visitor::FLT(Imm<2> f, Reg m, Reg n, Reg d) { return compare(kLess, true, f, m, n, d); }
bool Visitor::FEQ(Imm<2> f, Reg m, Reg n, Reg d) { return compare(kEqual, false, f, m, n, d); }
bool Visitor::FLEQ(Imm<2> f, Reg m, Reg n, Reg d) {
  return compare(kLess | kEqual, false, f, m, n, d);
}
bool Visitor::FLTQ(Imm<2> f, Reg m, Reg n, Reg d) { return compare(kLess, false, f, m, n, d); }

bool Visitor::FCLASS(Imm<2> f, Reg n, Reg d) {
  set_class(InsnClass::kFloatComparison);
  b_.help1(x_dst(d), unboxed(f, n), 0, static_cast<uint8_t>(format(f)),
           static_cast<uint16_t>(Helper1::fp_class));
  return true;
}

}  // namespace gpusim::riscv
