// Floating point: arithmetic, comparisons, approximations.
#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kF32{Kind::kFloat, 32}, kF64{Kind::kFloat, 64};
constexpr uint64_t kOneF32 = 0x3f800000, kOneF64 = 0x3ff0000000000000;

uint8_t minmax_aux(Type t, FpMinMax kind) {
  return static_cast<uint8_t>(static_cast<int>(format(t)) | static_cast<int>(kind) << 2);
}
uint64_t sign_of(Type t) { return uint64_t{1} << (t.bits - 1); }

// To 0 … 1; NaN gives +0. `d` comes last.
void saturated(Emitter& e, const Operand& d, Slot a, Type t) {
  const Slot low = e.temp();
  e.fp(Op::fminmax, Emitter::kExact, low, a, kZeroSlot, 0, minmax_aux(t, FpMinMax::kMaximumNumber));
  const Slot one = e.konst(t.bits == 64 ? kOneF64 : kOneF32);
  e.fp(Op::fminmax, Emitter::kExact, e.dst(d), low, one, 0,
       minmax_aux(t, FpMinMax::kMinimumNumber));
}

void arithmetic(Emitter& e, I i, Op of_32, Op of_64) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t);
  const Slot b = i.operands.size() > 2 ? e.src(i.operands[2], t) : Slot{0};
  const Slot c = i.operands.size() > 3 ? e.src(i.operands[3], t) : Slot{0};
  const Op op = t.bits == 64 ? of_64 : of_32;
  const Slot d = i.has("sat") ? e.temp() : e.dst(i.operands[0]);
  e.fp(op, e.state(i), d, a, b, c);
  if (i.has("sat")) saturated(e, i.operands[0], d, t);
}

void add(Emitter& e, I i) { arithmetic(e, i, Op::fadd32, Op::fadd64); }
void sub(Emitter& e, I i) { arithmetic(e, i, Op::fsub32, Op::fsub64); }
void mul(Emitter& e, I i) { arithmetic(e, i, Op::fmul32, Op::fmul64); }
void div(Emitter& e, I i) { arithmetic(e, i, Op::fdiv32, Op::fdiv64); }
void fma(Emitter& e, I i) { arithmetic(e, i, Op::fma32, Op::fma64); }
void sqrt(Emitter& e, I i) { arithmetic(e, i, Op::fsqrt32, Op::fsqrt64); }

// The approximations of doubles that flush look at the upper word alone, and give no other: the
// nearest, and one NaN.
constexpr uint64_t kUpperWord = 0xffffffff00000000, kHalfOfUpperWord = 0x80000000;
constexpr uint64_t kUpperNan = 0x7fffffff00000000;
constexpr uint16_t kUnordered = 1 << 0b0011;
bool is_of_upper_words(I i) { return i.type().bits == 64 && i.has("approx") && i.has("ftz"); }
Slot upper_word(Emitter& e, Slot a) {
  const Slot upper = e.temp();
  e.b.andi64(upper, a, kUpperWord);
  return upper;
}
void to_upper_word(Emitter& e, Slot d, Slot result) {
  const Slot flags = e.temp();
  e.fp(Op::fcmp, Emitter::kExact, flags, result, result, 0, static_cast<uint8_t>(FpFormat::kF64));
  e.b.addi64(result, result, kHalfOfUpperWord);
  e.b.andi64(result, result, kUpperWord);
  e.b.csel64(d, e.konst(kUpperNan), result, flags, kUnordered);
}

void rcp(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), one = e.konst(t.bits == 64 ? kOneF64 : kOneF32);
  if (is_of_upper_words(i)) {
    const Slot result = e.temp();
    e.fp(Op::fdiv64, e.state(i), result, one, upper_word(e, a));
    return to_upper_word(e, e.dst(i.operands[0]), result);
  }
  e.fp(t.bits == 64 ? Op::fdiv64 : Op::fdiv32, e.state(i), e.dst(i.operands[0]), one, a);
}

uint8_t convert_aux(FpFormat from, FpFormat to) {
  return static_cast<uint8_t>(static_cast<int>(from) | static_cast<int>(to) << 2);
}

// 1 / sqrt(a): of floats in double and rounded once more, of doubles with two roundings.
void rsqrt(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), root = e.temp(), one = e.konst(kOneF64);
  const Slot state = e.state(i);
  if (t.bits == 64) {
    const bool is_short = is_of_upper_words(i);
    e.fp(Op::fsqrt64, state, root, is_short ? upper_word(e, a) : a);
    const Slot result = is_short ? e.temp() : e.dst(i.operands[0]);
    e.fp(Op::fdiv64, state, result, one, root);
    if (is_short) to_upper_word(e, e.dst(i.operands[0]), result);
    return;
  }
  e.fp(Op::fconvert, state, root, a, 0, 0, convert_aux(FpFormat::kF32, FpFormat::kF64));
  e.fp(Op::fsqrt64, Emitter::kExact, root, root);
  e.fp(Op::fdiv64, Emitter::kExact, root, one, root);
  e.fp(Op::fconvert, state, e.dst(i.operands[0]), root, 0, 0,
       convert_aux(FpFormat::kF64, FpFormat::kF32));
}

void min_max(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), c = e.src(i.operands[2], t);
  const bool is_min = i.base == "min";
  const FpMinMax kind = i.has("NaN") ? (is_min ? FpMinMax::kMin : FpMinMax::kMax)
                        : is_min     ? FpMinMax::kMinimumNumber
                                     : FpMinMax::kMaximumNumber;
  const auto compute = [&](Slot d, Slot x, Slot y) {
    e.fp(Op::fminmax, e.state(i), d, x, y, 0, minmax_aux(t, kind));
  };
  if (i.has("xorsign"))
    min_max_of_sizes(e, e.dst(i.operands[0]), a, c, sign_of(t), 0x7fffffff, compute);
  else
    compute(e.dst(i.operands[0]), a, c);
}

// abs, neg: bits; with .ftz, a subnormal becomes a zero.
void abs_neg(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t);
  const bool is_abs = i.base == "abs";
  if (!i.has("ftz")) {
    const Slot d = e.dst(i.operands[0]);
    if (is_abs)
      e.b.andi64(d, a, sign_of(t) - 1);
    else
      e.b.xori64(d, a, sign_of(t));
    return;
  }
  const Slot bits = e.temp();
  if (is_abs)
    e.b.andi64(bits, a, sign_of(t) - 1);
  else
    e.b.xori64(bits, a, sign_of(t));
  e.fp(Op::fmul32, e.state(i), e.dst(i.operands[0]), bits, e.konst(kOneF32));
}

void copysign(Emitter& e, I i) {  // the sign of a, the magnitude of b
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
  const Slot sign = e.temp(), magnitude = e.temp();
  e.b.andi64(sign, a, sign_of(t));
  e.b.andi64(magnitude, b, sign_of(t) - 1);
  e.b.or64(e.dst(i.operands[0]), sign, magnitude);
}

void testp(Emitter& e, I i) {
  const Type t = i.type();
  const int fraction = t.bits == 32 ? 23 : 52;
  const uint64_t infinity = (sign_of(t) - 1) >> fraction << fraction;
  const uint64_t smallest_normal = uint64_t{1} << fraction;
  const Slot magnitude = e.temp(), truth = e.temp();
  e.b.andi64(magnitude, e.src(i.operands[1], t), sign_of(t) - 1);
  const uint8_t below = CompareKind{CompareRelation::kLessUnsigned, false, false}.pack();
  const uint8_t equal = CompareKind{CompareRelation::kEqual, false, false}.pack();
  const auto is_below = [&](uint64_t bound, bool yes) {
    e.b.sel_cmpi(truth, yes ? kOneSlot : kZeroSlot, yes ? kZeroSlot : kOneSlot, magnitude, bound,
                 below);
  };
  if (i.has("finite"))
    is_below(infinity, true);
  else if (i.has("infinite"))
    e.b.sel_cmpi(truth, kOneSlot, kZeroSlot, magnitude, infinity, equal);
  else if (i.has("number"))
    is_below(infinity + 1, true);
  else if (i.has("notanumber"))
    is_below(infinity + 1, false);
  else {
    // Exponent fields between zero and the last: one subtraction, one comparison.
    const bool is_normal = i.has("normal");
    e.b.addi64(magnitude, magnitude, 0 - (is_normal ? smallest_normal : 1));
    is_below(is_normal ? infinity - smallest_normal : smallest_normal - 1, true);
  }
  e.set_predicates(i.operands[0], truth);
}

Slot truth_of(Emitter& e, I i) {
  const Type t = i.types.back();
  const Slot a = e.src(i.operands[1], t), c = e.src(i.operands[2], t), truth = e.temp();
  e.fp(Op::fcmp, e.state(i), truth, a, c, 0, static_cast<uint8_t>(format(t)));
  e.b.set_if(truth, truth, truth_table(i));
  return truth;
}

void setp(Emitter& e, I i) {
  const Slot truth = truth_of(e, i);
  const Operand& out = i.operands[0];
  if (i.operands.size() == 3) return e.set_predicates(out, truth);
  const Slot first = e.temp();
  combine(e, i, first, truth, i.operands[3]);
  if (!out.is(Operand::Kind::kPair)) return e.set_predicates(out, first);
  const Slot second = e.temp();
  e.b.xori64(second, truth, 1);
  combine(e, i, second, second, i.operands[3]);
  e.set_predicates(out.elements[0], first);
  e.set_predicates(out.elements[1], second);
}

void set(Emitter& e, I i) {
  const Slot truth = truth_of(e, i);
  if (i.operands.size() == 4) combine(e, i, truth, truth, i.operands[3]);
  const uint64_t yes = i.type(0).is_float() ? kOneF32 : 0xffffffff;
  const CompareKind is_zero{CompareRelation::kEqual, false, false};
  e.b.sel_cmpi(e.dst(i.operands[0]), kZeroSlot, e.konst(yes), truth, 0, is_zero.pack());
}

void slct(Emitter& e, I i) {  // c >= 0; -0 is, NaN is not
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t), truth = e.temp();
  const Slot c = e.src(i.operands[3], kF32);
  e.fp(Op::fcmp, e.state(i), truth, c, kZeroSlot, 0, static_cast<uint8_t>(FpFormat::kF32));
  e.b.csel64(e.dst(i.operands[0]), a, b, truth, 1 << 0b0010 | 1 << 0b0110);
}

}  // namespace

const RowList& float_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add {rn|rz|rm|rp} {ftz} {sat} .f32", "d0 s0 s0", kArithmetic, add},
      {"add {rn|rz|rm|rp} .f64", "d0 s0 s0", kArithmetic, add},
      {"sub {rn|rz|rm|rp} {ftz} {sat} .f32", "d0 s0 s0", kArithmetic, sub},
      {"sub {rn|rz|rm|rp} .f64", "d0 s0 s0", kArithmetic, sub},
      {"mul {rn|rz|rm|rp} {ftz} {sat} .f32", "d0 s0 s0", kArithmetic, mul},
      {"mul {rn|rz|rm|rp} .f64", "d0 s0 s0", kArithmetic, mul},
      {"fma (rn|rz|rm|rp) {ftz} {sat} .f32", "d0 s0 s0 s0", kArithmetic, fma},
      {"fma (rn|rz|rm|rp) .f64", "d0 s0 s0 s0", kArithmetic, fma},
      {"mad (rn|rz|rm|rp) {ftz} {sat} .f32", "d0 s0 s0 s0", kArithmetic, fma},
      {"mad {ftz} {sat} .f32", "d0 s0 s0 s0", kArithmetic, fma},  // up to PTX 3.0: .rn
      {"mad (rn|rz|rm|rp) .f64", "d0 s0 s0 s0", kArithmetic, fma},
      {"div (rn|rz|rm|rp|approx) {ftz} .f32", "d0 s0 s0", kDivision, div},
      {"div [full] {ftz} .f32", "d0 s0 s0", kDivision, div},
      {"div (rn|rz|rm|rp) .f64", "d0 s0 s0", kDivision, div},
      {"sqrt (rn|rz|rm|rp|approx) {ftz} .f32", "d0 s0", kSpecial, sqrt},
      {"sqrt (rn|rz|rm|rp) .f64", "d0 s0", kSpecial, sqrt},
      {"rcp (rn|rz|rm|rp|approx) {ftz} .f32", "d0 s0", kSpecial, rcp},
      {"rcp (rn|rz|rm|rp) .f64", "d0 s0", kSpecial, rcp},
      {"rcp (approx) (ftz) .f64", "d0 s0", kSpecial, rcp},
      {"rsqrt (approx) {ftz} .f32|.f64", "d0 s0", kSpecial, rsqrt},
      {"min {ftz} {NaN} .f32", "d0 s0 s0", kArithmetic, min_max},
      {"min {ftz} {NaN} (xorsign) (abs) .f32", "d0 s0 s0", kArithmetic, min_max},
      {"max {ftz} {NaN} (xorsign) (abs) .f32", "d0 s0 s0", kArithmetic, min_max},
      {"min .f64", "d0 s0 s0", kArithmetic, min_max},
      {"max {ftz} {NaN} .f32", "d0 s0 s0", kArithmetic, min_max},
      {"max .f64", "d0 s0 s0", kArithmetic, min_max},
      {"abs {ftz} .f32", "d0 s0", kArithmetic, abs_neg},
      {"abs .f64", "d0 s0", kArithmetic, abs_neg},
      {"neg {ftz} .f32", "d0 s0", kArithmetic, abs_neg},
      {"neg .f64", "d0 s0", kArithmetic, abs_neg},
      {"copysign .f32|.f64", "d0 s0 s0", kLogical, copysign},
      {"testp (finite|infinite|number|notanumber|normal|subnormal) .f32|.f64", "dp s0", kComparison,
       testp},
      {"setp (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) {ftz} .f32", "dpq s0 s0",
       kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) .f64", "dpq s0 s0", kComparison,
       setp},
      {"setp (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) (and|or|xor) {ftz} .f32",
       "dpq s0 s0 sp", kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) (and|or|xor) .f64", "dpq s0 s0 sp",
       kComparison, setp},
      {"set (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) {ftz} .u32|.s32|.f32 .f32",
       "d0 s1 s1", kComparison, set},
      {"set (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) .u32|.s32|.f32 .f64", "d0 s1 s1",
       kComparison, set},
      {"set (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) (and|or|xor) {ftz} .u32|.s32|.f32 "
       ".f32",
       "d0 s1 s1 sp", kComparison, set},
      {"set (eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan) (and|or|xor) .u32|.s32|.f32 .f64",
       "d0 s1 s1 sp", kComparison, set},
      {"slct {ftz} .b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64 .f32", "d0 s0 s0 s1",
       kLogical, slct},
  };
  return rows;
}

}  // namespace gpusim::ptx
