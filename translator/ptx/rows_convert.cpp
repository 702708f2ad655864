// Moves, conversions of types, and of addresses.
#include <span>
#include <utility>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/special.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

// --- mov

using Parts = std::span<const Operand>;

// {a, b, …} of so many bits each in a word, the first lowest.
Slot packed(Emitter& e, Parts parts, int bits) {
  const Type part{Kind::kBits, static_cast<uint8_t>(bits)};
  const Slot sum = e.temp();
  e.b.mov(sum, e.src(parts[0], part));
  for (size_t k = 1; k < parts.size(); ++k)
    e.b.add_lsl64(sum, sum, e.src(parts[k], part), k * static_cast<size_t>(bits));
  return sum;
}

void unpack(Emitter& e, Parts parts, Slot from, int bits) {
  for (size_t k = 0; k < parts.size(); ++k)
    if (!e.is_sink(parts[k]))
      e.b.ubfx(e.dst(parts[k]), from, ones(bits),
               static_cast<uint8_t>(k * static_cast<size_t>(bits)));
}

int part_bits(const Operand& parts, Type whole) {
  return static_cast<int>(whole.bits / parts.elements.size());
}

// mov.b128: between a register and its halves, or quarters.
void mov_wide(Emitter& e, I i) {
  const Operand &d = i.operands[0], &s = i.operands[1];
  const auto halves = [](const Operand& parts) {
    const Parts all(parts.elements);
    return std::pair{all.first(all.size() / 2), all.last(all.size() / 2)};
  };
  const auto write = [&](Slot low, Slot high) {
    e.b.mov(e.dst(d), low);
    e.b.mov(e.high_dst(d), high);
  };
  if (d.is(Operand::Kind::kVector)) {
    const auto [low, high] = halves(d);
    const auto [from_low, from_high] = e.halves(i, s);
    unpack(e, low, from_low, part_bits(d, i.type()));
    unpack(e, high, from_high, part_bits(d, i.type()));
  } else if (s.is(Operand::Kind::kVector)) {
    const auto [low, high] = halves(s);
    const Slot first = packed(e, low, part_bits(s, i.type()));
    write(first, packed(e, high, part_bits(s, i.type())));
  } else {
    const auto [low, high] = e.halves(i, s);
    write(low, high);
  }
}

void mov_special(Emitter& e, I i) {
  const SpecialRegister special = special_register(i.operands[1].symbol);
  const Special what = special.what;
  const Type t = i.type();
  const Slot d = e.dst(i.operands[0]);
  if (what == Special::kWarpSize) return e.b.konst(d, 32);
  if (what == Special::kReservedShared) return e.b.konst(d, kCtaBase);
  Slot from = special_slot(what);
  if (what == Special::kClock) from = e.clock();
  if (special.is_high) return e.b.ubfx(d, from, ones(32), 32);
  e.zero_extend(d, from, t.bits);
}

void mov(Emitter& e, I i) {
  const Type t = i.type();
  const Operand &d = i.operands[0], &s = i.operands[1];
  if (d.is(Operand::Kind::kVector)) return unpack(e, d.elements, e.src(s, t), part_bits(d, t));
  if (s.is(Operand::Kind::kVector)) {
    const Slot whole = packed(e, s.elements, part_bits(s, t));
    return e.b.mov(e.dst(d), whole);
  }
  if (s.is(Operand::Kind::kSpecial)) return mov_special(e, i);
  if (s.is(Operand::Kind::kSymbol)) {
    const Place p = e.place_of(s);
    if (t.bits == 32 && p.space != Space::kShared)
      e.unsupported(i, "the address of this variable has 64 bits");
    if (p.space == Space::kParam)
      e.b.addi64(e.dst(d), kParamBase, p.address);
    else
      e.b.konst(e.dst(d), p.address);
    return;
  }
  if (const auto value = e.constant(s, t)) return e.b.konst(e.dst(d), *value);
  const Slot from = e.src(s, t), to = e.dst(d);
  if (from != to) e.b.mov(to, from);
}

// --- cvta: only the windows of shared and local memory have addresses of their own, and those are
// generic ones, too.
void cvta(Emitter& e, I i) {
  const Operand &d = i.operands[0], &s = i.operands[1];
  if (s.is(Operand::Kind::kSymbol)) {
    const Place p = e.place_of(s);
    if (p.space == Space::kParam)
      e.b.addi64(e.dst(d), kParamBase, p.address);
    else
      e.b.konst(e.dst(d), p.address);
    return;
  }
  const Slot from = e.src(s, i.type()), to = e.dst(d);
  if (from != to) e.b.mov(to, from);
}

void isspacep(Emitter& e, I i) {
  const Slot a = e.reg(i.operands[1]), offset = e.temp(), truth = e.temp();
  const uint8_t below = CompareKind{CompareRelation::kLessUnsigned, false, false}.pack();
  const auto within = [&](Slot d, uint64_t base, uint64_t size) {
    e.b.addi64(offset, a, 0 - base);
    e.b.sel_cmpi(d, kOneSlot, kZeroSlot, offset, size, below);
  };
  const auto in_params = [&](Slot d) {
    e.b.sub64(offset, a, kParamBase);
    e.b.sel_cmpi(d, kOneSlot, kZeroSlot, offset, e.window(kParamWindow).size, below);
  };
  if (i.has("shared") || i.has("shared::cta")) {
    within(truth, kCtaBase, kMostCtaBytes);
  } else if (i.has("shared::cluster")) {
    within(truth, kCtaBase, kSharedEnd - kCtaBase);
  } else if (i.has("local")) {
    within(truth, kLocalWindowBase, kMostLocalBytes);
  } else if (i.has("const")) {
    const Place all = e.window(kConstWindow);
    within(truth, all.address, all.size);
  } else if (i.has("param") || i.has("param::entry")) {
    in_params(truth);
  } else {  // global: none of the others
    const Slot other = e.temp();
    within(truth, kCtaBase, kSharedEnd - kCtaBase);
    within(other, kLocalWindowBase, kMostLocalBytes);
    e.b.or64(truth, truth, other);
    if (const Place all = e.window(kConstWindow); all.size != 0) {
      within(other, all.address, all.size);
      e.b.or64(truth, truth, other);
    }
    in_params(other);
    e.b.or64(truth, truth, other);
    e.b.xori64(truth, truth, 1);
  }
  e.set_predicates(i.operands[0], truth);
}

// --- cvt

// A result of type `t` as its register holds it, which may be wider.
void put(Emitter& e, const Operand& d, Slot value, Type t) {
  const int reg_bits = e.reg_type(d).bits;
  if (t.is_signed() && reg_bits > t.bits) {
    const Slot s = e.temp();
    e.sign_extend(s, value, t.bits);
    return e.zero_extend(e.dst(d), s, reg_bits);
  }
  e.zero_extend(e.dst(d), value, t.bits);
}

// The source, of which only the low bits count: zero- or sign-extended to 64.
Slot source(Emitter& e, const Operand& o, Type t) {
  if (o.is(Operand::Kind::kSpecial)) {
    const Slot s = e.temp();
    const Special what = special_register(o.symbol).what;
    if (what == Special::kWarpSize)
      e.b.konst(s, 32);
    else
      e.b.mov(s, special_slot(what));
    return s;
  }
  if (e.constant(o, t)) return t.is_signed() ? e.src_signed(o, t) : e.src(o, t);
  const Slot r = e.reg(o);
  if (t.is_signed() && t.bits < 64) {
    const Slot s = e.temp();
    e.sign_extend(s, r, t.bits);
    return s;
  }
  if (e.reg_type(o).bits <= t.bits) return r;
  const Slot s = e.temp();
  e.zero_extend(s, r, t.bits);
  return s;
}

// 64 bits, signed or not, to the nearest value of `t`.
Slot clamp(Emitter& e, Slot a, Type from, Type t) {
  const uint64_t most = ones(t.bits - t.is_signed());
  const uint64_t least = t.is_signed() ? ~most : 0;
  const auto less = [](bool is_signed) {
    return CompareKind{is_signed ? CompareRelation::kLessSigned : CompareRelation::kLessUnsigned,
                       false, false}
        .pack();
  };
  Slot x = a;
  if (from.is_signed()) {
    const Slot low = e.temp(), bound = e.konst(least);
    e.b.sel_cmp(low, bound, x, x, bound, less(true));
    x = low;
  }
  // What is left is not negative, or its destination is signed, too.
  const Slot high = e.temp(), bound = e.konst(most);
  e.b.sel_cmp(high, bound, x, bound, x, less(from.is_signed() && t.is_signed()));
  return high;
}

void integer_to_integer(Emitter& e, I i, Type to, Type from) {
  const Slot s = source(e, i.operands[1], from);
  put(e, i.operands[0], i.has("sat") ? clamp(e, s, from, to) : s, to);
}

void integer_to_float(Emitter& e, I i, Type to, Type from) {
  const Slot s = source(e, i.operands[1], from);
  const Slot d = i.has("sat") ? e.temp() : e.dst(i.operands[0]);
  // The micro-op reads 32 or 64 bits: shorter ones have been extended.
  const bool is_long = from.bits == 64;
  e.fp(Op::i2f, e.state(i), d, s, 0, 0, i2f_aux(format(to), from.is_signed(), is_long));
  if (!i.has("sat")) return;
  const Slot low = e.temp();
  const auto aux = [&](FpMinMax kind) {
    return static_cast<uint8_t>(static_cast<int>(format(to)) | static_cast<int>(kind) << 2);
  };
  const uint64_t one = to.bits == 64 ? 0x3ff0000000000000 : to.bits == 32 ? 0x3f800000 : 0x3c00;
  e.fp(Op::fminmax, Emitter::kExact, low, d, kZeroSlot, 0, aux(FpMinMax::kMaximumNumber));
  e.fp(Op::fminmax, Emitter::kExact, e.dst(i.operands[0]), low, e.konst(one), 0,
       aux(FpMinMax::kMinimumNumber));
}

FpRounding integral_rounding(I i) {
  if (i.has("rzi")) return FpRounding::kZero;
  if (i.has("rmi")) return FpRounding::kMinusInf;
  if (i.has("rpi")) return FpRounding::kPlusInf;
  return FpRounding::kNearestEven;
}

// Out of range: the nearest value. NaN: zero, but where either side has 64 bits half of the range.
void float_to_integer(Emitter& e, I i, Slot s, Type to, Type from) {
  const Slot value = e.temp();
  const bool is_long = to.bits == 64;
  e.fp(Op::f2i, e.state(i), value, s, 0, 0,
       f2i_aux(format(from), integral_rounding(i), to.is_signed(), is_long));
  Slot r = value;
  if (to.bits < 32) {
    const Type wide{to.kind, 32};
    const Slot extended = e.temp();
    if (to.is_signed())
      e.sign_extend(extended, value, 32);
    else
      e.b.mov(extended, value);
    r = clamp(e, extended, wide, to);
  }
  if (from.bits == 64 || is_long) {
    const Slot flags = e.temp(), chosen = e.temp();
    e.fp(Op::fcmp, Emitter::kExact, flags, s, s, 0, static_cast<uint8_t>(format(from)));
    const Slot if_nan = e.konst(uint64_t{1} << (to.bits - 1));
    e.b.csel64(chosen, if_nan, r, flags, 1 << 0b0011);
    r = chosen;
  }
  put(e, i.operands[0], r, to);
}

void float_to_float(Emitter& e, I i, Type to, Type from) {
  const Slot s = e.src(i.operands[1], from);
  const bool saturates = i.has("sat");
  const Slot d = saturates ? e.temp() : e.dst(i.operands[0]);
  const bool is_integral = i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi");
  if (to == from && is_integral) {
    e.fp(Op::fround, e.state(i), d, s, 0, 0,
         static_cast<uint8_t>(static_cast<int>(format(from)) |
                              static_cast<int>(integral_rounding(i)) << 2));
  } else if (to == from) {
    if (i.has("ftz"))
      e.fp(Op::fmul32, e.state(i), d, s, e.konst(0x3f800000));
    else
      e.b.mov(d, s);
  } else {
    e.fp(Op::fconvert, e.state(i), d, s, 0, 0,
         static_cast<uint8_t>(static_cast<int>(format(from)) | static_cast<int>(format(to)) << 2));
  }
  if (!saturates) return;
  const auto aux = [&](FpMinMax kind) {
    return static_cast<uint8_t>(static_cast<int>(format(to)) | static_cast<int>(kind) << 2);
  };
  const uint64_t one = to.bits == 64 ? 0x3ff0000000000000 : to.bits == 32 ? 0x3f800000 : 0x3c00;
  const Slot low = e.temp();
  e.fp(Op::fminmax, Emitter::kExact, low, d, kZeroSlot, 0, aux(FpMinMax::kMaximumNumber));
  e.fp(Op::fminmax, Emitter::kExact, e.dst(i.operands[0]), low, e.konst(one), 0,
       aux(FpMinMax::kMinimumNumber));
}

void cvt(Emitter& e, I i) {
  const Type to = i.types[0], from = i.types[1];
  if (to.is_float()) {
    if (from.is_float())
      float_to_float(e, i, to, from);
    else
      integer_to_float(e, i, to, from);
  } else if (from.is_float()) {
    float_to_integer(e, i, e.src(i.operands[1], from), to, from);
  } else {
    integer_to_integer(e, i, to, from);
  }
}

// cvt.pack d, a, b {, c}: c's low bits, a and b, each within the first type, b lowest.
void pack_saturated(Emitter& e, I i) {
  const Type part = i.types[0], from = i.types[1];
  const auto clamped = [&](const Operand& o) {
    const Slot value = clamp(e, e.src_signed(o, from), from, part), d = e.temp();
    e.b.andi64(d, value, ones(part.bits));
    return d;
  };
  const Slot a = clamped(i.operands[1]), b = clamped(i.operands[2]), sum = e.temp();
  e.b.add_lsl64(sum, b, a, part.bits);
  if (i.operands.size() == 4)
    e.b.add_lsl64(sum, sum, e.src(i.operands[3], i.types[2]), 2 * uint64_t{part.bits});
  e.zero_extend(e.dst(i.operands[0]), sum, 32);
}

void bfloat_to_integer(Emitter& e, I i) {
  const Slot single = e.temp();
  e.b.lsli64(single, e.src(i.operands[1], i.types[1]), 16);
  float_to_integer(e, i, single, i.types[0], {Kind::kFloat, 32});
}

}  // namespace

const RowList& convert_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"mov .b128", "md mv", kLogical, mov_wide},
      {"mov .pred|.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64", "md mv", kLogical, mov},
      {"cvta (global|shared|shared::cta|shared::cluster|local|const|param) .u64", "d0 any", kOther,
       cvta},
      {"cvta (to) (global|shared|shared::cta|shared::cluster|local|const|param) .u64", "d0 s0",
       kOther, cvta},
      {"isspacep (global|shared|shared::cta|shared::cluster|local|const|param|param::entry)",
       "dp any", kOther, isspacep},
      {"cvt {sat} .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64 .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64",
       "c0 c1", kLogical, cvt},
      {"cvt (rn|rz|rm|rp) {sat} {ftz} .f32 .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64", "c0 c1",
       kArithmetic, cvt},
      {"cvt (rn|rz|rm|rp) {sat} .f16|.f64 .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64", "c0 c1",
       kArithmetic, cvt},
      {"cvt (rni|rzi|rmi|rpi) {ftz} {sat} .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64 .f32", "c0 c1",
       kArithmetic, cvt},
      {"cvt (rni|rzi|rmi|rpi) {sat} .u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64 .f16|.f64", "c0 c1",
       kArithmetic, cvt},
      {"cvt (pack) (sat) .u16|.s16 .s32", "d32 s1 s1", kLogical, pack_saturated},
      {"cvt (pack) (sat) .u8|.s8 .s32 .b32", "d32 s1 s1 s32", kLogical, pack_saturated},
      {"cvt (rni|rzi|rmi|rpi) .u16|.u32|.u64|.s16|.s32|.s64 .bf16", "d0 s1", kArithmetic,
       bfloat_to_integer},
      {"cvt (rn|rz|rm|rp) {ftz} {sat} .f32 .f64", "c0 c1", kArithmetic, cvt},
      {"cvt {ftz} {sat} .f64 .f32", "c0 c1", kArithmetic, cvt},
      {"cvt {rni|rzi|rmi|rpi} {ftz} {sat} .f32 .f32", "c0 c1", kArithmetic, cvt},
      {"cvt {rni|rzi|rmi|rpi} {sat} .f64 .f64", "c0 c1", kArithmetic, cvt},
      {"cvt (rn|rz) {ftz} {sat} .f16 .f32", "c0 c1", kArithmetic, cvt},
      {"cvt {ftz} {sat} .f32 .f16", "c0 c1", kArithmetic, cvt},
  };
  return rows;
}

}  // namespace gpusim::ptx
