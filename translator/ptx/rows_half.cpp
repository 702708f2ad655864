// Half precision: f16, and two of them in a word.
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr uint64_t kOne = 0x3c00, kSign = 0x8000, kNan = 0x7fff;
constexpr auto kF16 = static_cast<uint8_t>(FpFormat::kF16);

uint8_t aux(int kind) { return static_cast<uint8_t>(kF16 | kind << 2); }
uint8_t aux(FpMinMax kind) { return aux(static_cast<int>(kind)); }

void saturate(Emitter& e, Slot d, Slot a) {
  e.fp(Op::fminmax, Emitter::kExact, d, a, kZeroSlot, 0, aux(FpMinMax::kMaximumNumber));
  e.fp(Op::fminmax, Emitter::kExact, d, d, e.konst(kOne), 0, aux(FpMinMax::kMinimumNumber));
}

// d = the operation on values in slots; d is none of them.
void compute(Emitter& e, I i, Slot d, Slot a, Slot b, Slot c) {
  const Slot state = e.state(i);
  const auto two = [&](FpMisc2 kind) {
    e.fp(Op::fmisc2, state, d, a, b, 0, aux(static_cast<int>(kind)));
  };
  if (i.base == "add")
    two(FpMisc2::kAdd);
  else if (i.base == "sub")
    two(FpMisc2::kSub);
  else if (i.base == "mul")
    two(FpMisc2::kMul);
  else if (i.base == "fma")
    e.fp(Op::fmisc3, state, d, a, b, c, aux(static_cast<int>(FpMisc3::kMulAdd)));
  else if (i.base == "min" || i.base == "max") {
    const bool is_min = i.base == "min";
    const FpMinMax kind = i.has("NaN") ? (is_min ? FpMinMax::kMin : FpMinMax::kMax)
                          : is_min     ? FpMinMax::kMinimumNumber
                                       : FpMinMax::kMaximumNumber;
    if (!i.has("xorsign")) return void(e.fp(Op::fminmax, state, d, a, b, 0, aux(kind)));
    min_max_of_sizes(e, d, a, b, kSign, kNan, [&](Slot to, Slot x, Slot y) {
      e.fp(Op::fminmax, state, to, x, y, 0, aux(kind));
    });
  } else {
    if (i.base == "neg")
      e.b.xori64(d, a, kSign);
    else
      e.b.andi64(d, a, kSign - 1);
    // Multiplied by one, subnormals become zeros.
    if (i.has("ftz"))
      e.fp(Op::fmisc2, state, d, d, e.konst(kOne), 0, aux(static_cast<int>(FpMisc2::kMul)));
  }
  if (i.has("sat")) saturate(e, d, d);
  if (i.has("relu")) {
    const BlockBuilder::Temporaries own(e.b);
    const Slot sign = e.temp();
    e.b.andi64(sign, d, kSign);
    e.b.sel_cmpi(d, d, kZeroSlot, sign, 0, kEqual64);
  }
}

Slot half(Emitter& e, Slot word, int which) {
  const Slot s = e.temp();
  e.b.ubfx(s, word, 0xffff, static_cast<uint8_t>(16 * which));
  return s;
}

void arithmetic(Emitter& e, I i) {
  const Type t = i.type();
  Slot s[3] = {kZeroSlot, kZeroSlot, kZeroSlot};
  for (size_t k = 1; k < i.operands.size(); ++k) s[k - 1] = e.src(i.operands[k], t);
  const Slot low = e.temp();
  if (!t.is_packed) {
    compute(e, i, low, s[0], s[1], s[2]);
    return e.b.mov(e.dst(i.operands[0]), low);
  }
  const Slot high = e.temp();
  for (int which = 0; which < 2; ++which)
    compute(e, i, which == 0 ? low : high, half(e, s[0], which), half(e, s[1], which),
            half(e, s[2], which));
  e.b.add_lsl64(e.dst(i.operands[0]), low, high, 16);
}

}  // namespace

const RowList& half_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add {rn} {ftz} {sat} .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"sub {rn} {ftz} {sat} .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"mul {rn} {ftz} {sat} .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"fma (rn) {ftz} {sat} .f16|.f16x2", "d0 s0 s0 s0", kArithmetic, arithmetic},
      {"fma (rn) {ftz} (relu) .f16|.f16x2", "d0 s0 s0 s0", kArithmetic, arithmetic},
      {"min {ftz} {NaN} .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"max {ftz} {NaN} .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"min {ftz} {NaN} (xorsign) (abs) .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"max {ftz} {NaN} (xorsign) (abs) .f16|.f16x2", "d0 s0 s0", kArithmetic, arithmetic},
      {"neg {ftz} .f16|.f16x2", "d0 s0", kArithmetic, arithmetic},
      {"abs {ftz} .f16|.f16x2", "d0 s0", kArithmetic, arithmetic},
  };
  return rows;
}

}  // namespace gpusim::ptx
