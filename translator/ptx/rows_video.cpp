// Scalar video instructions: bytes, halves or words of two operands, and what is made of the result
// and a third. PTX ISA, "Scalar Video Instructions".
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kU32{Kind::kUnsigned, 32}, kS32{Kind::kSigned, 32};

// The part of an operand that is taken, with the type's sign, in 64 bits.
void take(Emitter& e, Slot d, Operand o, Type t) {
  o.is_negated = false;
  if (o.part_bits == 0) return e.b.mov(d, t.is_signed() ? e.src_signed(o, t) : e.src(o, t));
  e.b.lsri64(d, e.src(o, t), o.part_at);
  if (t.is_signed())
    e.sign_extend(d, d, o.part_bits);
  else
    e.zero_extend(d, d, o.part_bits);
}

void clamp(Emitter& e, Slot t, Type type) {
  const BlockBuilder::Temporaries own(e.b);
  const uint64_t most = ones(type.bits - type.is_signed());
  const Slot above = e.konst(most), below = e.konst(type.is_signed() ? ~most : 0);
  e.b.sel_cmp(t, below, t, t, below, kLess64);
  e.b.sel_cmp(t, above, t, above, t, kLess64);
}

void compare(Emitter& e, I i, Slot t, Slot a, Slot b) {
  // le and gt are lt with the operands exchanged; ne, le and ge are the opposite of another.
  if (i.has("le") || i.has("gt")) std::swap(a, b);
  const bool is_opposite = i.has("ne") || i.has("le") || i.has("ge");
  const bool is_equality = i.has("eq") || i.has("ne");
  e.b.sel_cmp(t, is_opposite ? kZeroSlot : kOneSlot, is_opposite ? kOneSlot : kZeroSlot, a, b,
              is_equality ? kEqual64 : kLess64);
}

// t = a, operated on with b; both may change.
void compute(Emitter& e, I i, Slot t, Slot a, Slot b) {
  if (i.base == "vadd") return e.b.add64(t, a, b);
  if (i.base == "vsub") return e.b.sub64(t, a, b);
  if (i.base == "vmin") return e.b.sel_cmp(t, a, b, a, b, kLess64);
  if (i.base == "vmax") return e.b.sel_cmp(t, b, a, a, b, kLess64);
  if (i.base == "vset") return compare(e, i, t, a, b);
  if (i.base == "vabsdiff") {
    const BlockBuilder::Temporaries own(e.b);
    const Slot other = e.temp();
    e.b.sub64(other, b, a);
    e.b.sub64(t, a, b);
    return e.b.sel_cmp(t, other, t, a, b, kLess64);
  }
  const Slot most = e.konst(32);
  if (i.has("wrap"))
    e.b.andi64(b, b, 31);
  else
    e.b.sel_cmp(b, most, b, most, b, kBelow64);
  if (i.base == "vshr") return e.b.asr64(t, a, b);
  e.b.lsl64(t, a, b);
  if (i.types[1].is_signed() || !i.has("sat")) return;
  // A large number by 32 is clamped as one that is not negative.
  const Slot large = e.konst(~uint64_t{0} << 33 >> 1);
  e.b.sel_cmp(t, large, t, t, kZeroSlot, kLess64);
}

void scalar(Emitter& e, I i) {
  const bool is_comparison = i.base == "vset";
  const Type of_d = is_comparison ? kU32 : i.types[0];
  const Type of_a = i.types[is_comparison ? 0 : 1];
  const Type of_b = i.types[is_comparison ? 1 : 2];
  const Operand& out = i.operands[0];
  const Slot t = e.temp(), a = e.temp(), b = e.temp();
  take(e, a, i.operands[1], of_a);
  take(e, b, i.operands[2], of_b);
  compute(e, i, t, a, b);
  const int bits = out.part_bits == 0 ? 32 : out.part_bits;
  if (i.has("sat"))
    clamp(e, t, {of_d.kind, static_cast<uint8_t>(bits)});
  else
    e.sign_extend(t, t, 33);  // the second operation's .s33
  if (i.operands.size() == 4) {
    take(e, a, i.operands[3], of_d);
    if (out.part_bits != 0) {
      e.zero_extend(t, t, bits);
      e.b.andi64(a, a, ~(ones(bits) << out.part_at));
      e.b.add_lsl64(t, a, t, out.part_at);
    } else if (i.has("add")) {
      e.b.add64(t, t, a);
    } else if (i.has("min")) {
      e.b.sel_cmp(t, t, a, t, a, kLess64);
    } else if (i.has("max")) {
      e.b.sel_cmp(t, a, t, t, a, kLess64);
    }
  }
  e.zero_extend(e.dst(out), t, 32);
}

// A sum of 128 bits: t and high.
void multiply_add(Emitter& e, I i) {
  const Operand &x = i.operands[1], &y = i.operands[2], &z = i.operands[3];
  const bool is_negated = x.is_negated != y.is_negated;
  const bool is_signed_product = i.types[1].is_signed() || i.types[2].is_signed();
  const bool is_signed = is_signed_product || is_negated || z.is_negated;
  const Slot t = e.temp(), high = e.temp(), c = e.temp(), carry = e.temp();
  take(e, t, x, i.types[1]);
  take(e, c, y, i.types[2]);
  e.b.mul64(t, t, c);
  if (is_signed_product)
    e.b.asri64(high, t, 63);
  else
    e.b.mov(high, kZeroSlot);
  take(e, c, z, is_signed ? kS32 : kU32);
  const auto complement = [&](Slot s) { e.b.xori64(s, s, ~uint64_t{0}); };
  if (is_negated) {
    complement(t);
    complement(high);
  } else if (z.is_negated) {
    complement(c);
  }
  const auto add = [&](Slot more) {
    e.b.add64(t, t, more);
    e.b.sel_cmp(carry, kOneSlot, kZeroSlot, t, more, kBelow64);
    e.b.add64(high, high, carry);
  };
  if (is_signed) {
    e.b.asri64(carry, c, 63);
    e.b.add64(high, high, carry);
  }
  add(c);
  if (i.has("po") || is_negated || z.is_negated) add(kOneSlot);
  const int shift = i.has("shr7") ? 7 : i.has("shr15") ? 15 : 0;
  if (shift != 0) {
    e.b.lsri64(t, t, static_cast<uint64_t>(shift));
    e.b.lsli64(carry, high, static_cast<uint64_t>(64 - shift));
    e.b.or64(t, t, carry);
    e.b.asri64(high, high, static_cast<uint64_t>(shift));
  }
  if (i.has("sat")) {
    // What does not fit 64 bits with a sign becomes the largest number of its sign.
    const Slot least = e.konst(uint64_t{1} << 63), most = e.konst(~(uint64_t{1} << 63));
    e.b.asri64(carry, t, 63);
    e.b.sel_cmp(c, least, most, high, kZeroSlot, kLess64);
    e.b.sel_cmp(t, t, c, carry, high, kEqual64);
    clamp(e, t, is_signed ? kS32 : kU32);
  }
  e.zero_extend(e.dst(i.operands[0]), t, 32);
}

}  // namespace

const RowList& video_rows() {
  using enum RowClass;
  static const RowList rows = {
#define GPUSIM_VIDEO(syntax)                                         \
  {syntax, "d0 v1 v1", kArithmetic, scalar},                         \
      {syntax " (add|min|max)", "d0 v1 v1 s0", kArithmetic, scalar}, \
      {syntax, "dpart v1 v1 s0", kArithmetic, scalar}
      GPUSIM_VIDEO("vadd {sat} .u32|.s32 .u32|.s32 .u32|.s32"),
      GPUSIM_VIDEO("vsub {sat} .u32|.s32 .u32|.s32 .u32|.s32"),
      GPUSIM_VIDEO("vabsdiff {sat} .u32|.s32 .u32|.s32 .u32|.s32"),
      GPUSIM_VIDEO("vmin {sat} .u32|.s32 .u32|.s32 .u32|.s32"),
      GPUSIM_VIDEO("vmax {sat} .u32|.s32 .u32|.s32 .u32|.s32"),
      GPUSIM_VIDEO("vshl {sat} (clamp|wrap) .u32|.s32 .u32|.s32 .u32"),
      GPUSIM_VIDEO("vshr {sat} (clamp|wrap) .u32|.s32 .u32|.s32 .u32"),
      GPUSIM_VIDEO("vset (eq|ne|lt|le|gt|ge) .u32|.s32 .u32|.s32"),
#undef GPUSIM_VIDEO
      {"vmad {sat} {shr7|shr15} .u32|.s32 .u32|.s32 .u32|.s32", "d0 vn vn sn", kArithmetic,
       multiply_add},
      {"vmad (po) {sat} {shr7|shr15} .u32|.s32 .u32|.s32 .u32|.s32", "d0 v1 v1 s0", kArithmetic,
       multiply_add},
  };
  return rows;
}

}  // namespace gpusim::ptx
