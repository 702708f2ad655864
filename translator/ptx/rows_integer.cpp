// Integer arithmetic.
#include <bit>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/helpers.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

// d = a clamped to what t can hold, from 64 bits, signed.
void saturate(Emitter& e, Slot d, Slot a, Type t) {
  const bool is_signed = t.is_signed();
  const uint64_t most = ones(t.bits - is_signed);
  const uint64_t least = is_signed ? ~most : 0;
  const Slot low = e.temp(), high = e.temp();
  const Slot least_slot = e.konst(least), most_slot = e.konst(most);
  e.b.sel_cmp(low, least_slot, a, a, least_slot, kLess64);
  e.b.sel_cmp(high, most_slot, low, most_slot, low, kLess64);
  e.zero_extend(d, high, t.bits);
}

void add(Emitter& e, I i) {
  const Type t = i.type();
  const Operand *x = &i.operands[1], *y = &i.operands[2];
  if (i.has("sat")) {
    const Slot a = e.src_signed(*x, t), c = e.src_signed(*y, t), sum = e.temp();
    e.b.add64(sum, a, c);
    return saturate(e, e.dst(i.operands[0]), sum, t);
  }
  if (e.constant(*x, t)) std::swap(x, y);
  const Slot a = e.src(*x, t);
  if (const auto c = e.constant(*y, t)) {
    const Slot d = e.dst(i.operands[0]);
    if (t.bits == 64)
      e.b.addi64(d, a, *c);
    else
      e.b.addi32(d, a, *c);
    return trim(e, d, t);
  }
  const Slot c = e.src(*y, t), d = e.dst(i.operands[0]);
  if (t.bits == 64)
    e.b.add64(d, a, c);
  else
    e.b.add32(d, a, c);
  trim(e, d, t);
}

void sub(Emitter& e, I i) {
  const Type t = i.type();
  if (i.has("sat")) {
    const Slot a = e.src_signed(i.operands[1], t), c = e.src_signed(i.operands[2], t);
    const Slot difference = e.temp();
    e.b.sub64(difference, a, c);
    return saturate(e, e.dst(i.operands[0]), difference, t);
  }
  const Slot a = e.src(i.operands[1], t);
  if (const auto c = e.constant(i.operands[2], t)) {
    const Slot d = e.dst(i.operands[0]);
    if (t.bits == 64)
      e.b.addi64(d, a, 0 - *c);
    else
      e.b.addi32(d, a, (0 - *c) & ones(32));
    return trim(e, d, t);
  }
  const Slot c = e.src(i.operands[2], t), d = e.dst(i.operands[0]);
  if (t.bits == 64)
    e.b.sub64(d, a, c);
  else
    e.b.sub32(d, a, c);
  trim(e, d, t);
}

// The upper half of a product.
void high_product(Emitter& e, Slot d, I i) {
  const Type t = i.type();
  if (t.bits == 64) {
    const Slot a = e.src(i.operands[1], t), c = e.src(i.operands[2], t);
    if (t.is_signed())
      e.b.smulh(d, a, c);
    else
      e.b.umulh(d, a, c);
    return;
  }
  const Slot a = t.is_signed() ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  const Slot c = t.is_signed() ? e.src_signed(i.operands[2], t) : e.src(i.operands[2], t);
  const Slot product = e.temp();
  e.b.mul64(product, a, c);
  e.b.ubfx(d, product, ones(t.bits), static_cast<uint8_t>(t.bits));
}

// d = a * b + c, of twice the width.
void wide(Emitter& e, I i, Slot sum) {
  const Type t = i.type();
  const auto c = e.constant(i.operands[2], t);
  if (t.bits == 32 && c && std::has_single_bit(*c) && (!t.is_signed() || *c < ones(31))) {
    const Slot a = e.src(i.operands[1], t), d = e.dst(i.operands[0]);
    const auto shift = static_cast<uint64_t>(std::countr_zero(*c));
    if (t.is_signed())
      e.b.add_sxtw64(d, sum, a, shift);
    else
      e.b.add_uxtw64(d, sum, a, shift);
    return;
  }
  if (t.bits == 32) {
    const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
    const Slot d = e.dst(i.operands[0]);
    if (t.is_signed())
      e.b.smaddl(d, a, b, sum);
    else
      e.b.umaddl(d, a, b, sum);
    return;
  }
  const Slot a = t.is_signed() ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  const Slot b = t.is_signed() ? e.src_signed(i.operands[2], t) : e.src(i.operands[2], t);
  e.b.madd32(e.dst(i.operands[0]), a, b, sum);
}

void mul(Emitter& e, I i) {
  const Type t = i.type();
  if (i.has("wide")) return wide(e, i, kZeroSlot);
  if (i.has("hi")) {
    const Slot product = e.temp();
    high_product(e, product, i);
    e.b.mov(e.dst(i.operands[0]), product);
    return;
  }
  const Slot a = e.src(i.operands[1], t), c = e.src(i.operands[2], t), d = e.dst(i.operands[0]);
  if (t.bits == 64)
    e.b.mul64(d, a, c);
  else
    e.b.mul32(d, a, c);
  trim(e, d, t);
}

// d = product + c, within what the type has.
void add_saturated(Emitter& e, I i, Slot product) {
  const Type t = i.type();
  const Slot p = e.temp(), s = e.src_signed(i.operands[3], t), sum = e.temp();
  e.sign_extend(p, product, t.bits);
  e.b.add64(sum, p, s);
  saturate(e, e.dst(i.operands[0]), sum, t);
}

void mad(Emitter& e, I i) {
  const Type t = i.type();
  if (i.has("wide")) {
    const Type twice{t.kind, static_cast<uint8_t>(t.bits * 2)};
    return wide(e, i, e.src(i.operands[3], twice));
  }
  const Slot c = e.src(i.operands[3], t);
  if (i.has("hi")) {
    const Slot product = e.temp();
    high_product(e, product, i);
    if (i.has("sat")) return add_saturated(e, i, product);
    const Slot d = e.dst(i.operands[0]);
    if (t.bits == 64)
      e.b.add64(d, product, c);
    else
      e.b.add32(d, product, c);
    return trim(e, d, t);
  }
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t), d = e.dst(i.operands[0]);
  if (t.bits == 64)
    e.b.madd64(d, a, b, c);
  else
    e.b.madd32(d, a, b, c);
  trim(e, d, t);
}

// mul24, mad24: the low 24 bits of both.
void mul24(Emitter& e, I i) {
  const Type t = i.type();
  const auto low = [&](const Operand& o) {
    const Slot s = e.temp();
    if (t.is_signed())
      e.b.sbf64(s, e.src(o, t), 40, 40);
    else
      e.b.andi64(s, e.src(o, t), ones(24));
    return s;
  };
  const Slot a = low(i.operands[1]), c = low(i.operands[2]), product = e.temp();
  e.b.mul64(product, a, c);
  if (i.has("hi")) e.b.ubfx(product, product, ones(32), 16);
  if (i.base == "mul24")
    e.b.mov32(e.dst(i.operands[0]), product);
  else if (i.has("sat"))
    add_saturated(e, i, product);
  else
    e.b.add32(e.dst(i.operands[0]), product, e.src(i.operands[3], t));
}

// By zero: all ones, and the dividend.
void divide(Emitter& e, I i) {
  const Type t = i.type();
  const bool is_signed = t.is_signed(), is_long = t.bits == 64;
  const auto source = [&](const Operand& o) {
    return is_signed && t.bits < 32 ? e.src_signed(o, t) : e.src(o, t);
  };
  const Slot a = source(i.operands[1]), c = source(i.operands[2]), quotient = e.temp();
  if (is_long && is_signed)
    e.b.sdiv64(quotient, a, c);
  else if (is_long)
    e.b.udiv64(quotient, a, c);
  else if (is_signed)
    e.b.sdiv32(quotient, a, c);
  else
    e.b.udiv32(quotient, a, c);
  const Slot d = e.dst(i.operands[0]);
  if (i.base == "div") {
    if (const auto known = e.constant(i.operands[2], t); known && *known != 0)
      e.b.mov(d, quotient);
    else
      e.b.sel_cmpi(d, e.konst(ones(t.bits)), quotient, c, 0,
                   compare_kind(CompareRelation::kEqual, !is_long));
  } else if (is_long) {
    e.b.msub64(d, quotient, c, a);
  } else {
    e.b.msub32(d, quotient, c, a);
  }
  trim(e, d, t);
}

void abs_neg(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), s = e.src_signed(i.operands[1], t), minus = e.temp();
  if (t.bits == 64)
    e.b.sub64(minus, kZeroSlot, a);
  else
    e.b.sub32(minus, kZeroSlot, a);
  trim(e, minus, t);
  const Slot d = e.dst(i.operands[0]);
  if (i.base == "neg")
    e.b.mov(d, minus);
  else
    e.b.sel_cmpi(d, minus, a, s, 0, kLess64);
}

void min_max(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), c = e.src(i.operands[2], t);
  const bool is_min = i.base == "min";
  const auto relation =
      t.is_signed() ? CompareRelation::kLessSigned : CompareRelation::kLessUnsigned;
  if (t.is_signed() && t.bits < 32) {
    const Slot x = e.src_signed(i.operands[1], t), y = e.src_signed(i.operands[2], t);
    e.b.sel_cmp(e.dst(i.operands[0]), is_min ? a : c, is_min ? c : a, x, y, kLess64);
    return;
  }
  e.b.sel_cmp(e.dst(i.operands[0]), is_min ? a : c, is_min ? c : a, a, c,
              compare_kind(relation, t.bits != 64));
}

// c + |a - b|
void sad(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = t.is_signed() ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  const Slot b = t.is_signed() ? e.src_signed(i.operands[2], t) : e.src(i.operands[2], t);
  const Slot x = e.temp(), y = e.temp(), c = e.src(i.operands[3], t);
  e.b.sub64(x, a, b);
  e.b.sub64(y, b, a);
  e.b.sel_cmp(x, y, x, a, b, t.is_signed() ? kLess64 : kBelow64);
  e.b.add64(x, x, c);
  e.zero_extend(e.dst(i.operands[0]), x, t.bits);
}

// d = `bits` bits of the word a, from bit `first` on, as a number of 32 bits.
void part(Emitter& e, Slot d, Slot a, int first, int bits, bool is_signed) {
  if (!is_signed) {
    e.b.ubfx(d, a, (uint64_t{1} << bits) - 1, static_cast<uint8_t>(first));
    return;
  }
  const int above = 32 - bits - first;
  if (above != 0) e.b.lsli32(d, a, static_cast<uint8_t>(above));
  e.b.asri32(d, above != 0 ? d : a, static_cast<uint8_t>(32 - bits));
}

// dp4a, dp2a: c and the products of bytes, or of halves and bytes; each operand has its own sign.
void dot(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.types[0]), b = e.src(i.operands[2], i.types[1]);
  const Slot x = e.temp(), y = e.temp(), sum = e.temp();
  const bool is_bytes = i.base == "dp4a";
  Slot before = e.src(i.operands[3], i.types[0]);
  for (int k = 0; k < (is_bytes ? 4 : 2); ++k) {
    part(e, x, a, is_bytes ? 8 * k : 16 * k, is_bytes ? 8 : 16, i.types[0].is_signed());
    part(e, y, b, 8 * k + (i.has("hi") ? 16 : 0), 8, i.types[1].is_signed());
    e.b.madd32(sum, x, y, before);
    before = sum;
  }
  e.b.mov32(e.dst(i.operands[0]), sum);
}

// vabsdiff4: differences of four bytes each, or their sum and c.
void differences(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.types[1]), b = e.src(i.operands[2], i.types[2]);
  const Slot larger = e.temp(), smaller = e.temp(), apart = e.temp();
  const bool is_signed = i.types[1].is_signed();
  e.b.emit(is_signed ? Op::vsmax : Op::vumax, larger, a, b, 0, 0, 0);
  e.b.emit(is_signed ? Op::vsmin : Op::vumin, smaller, a, b, 0, 0, 0);
  e.b.emit(Op::vsub, apart, larger, smaller, 0, 0, 0);
  if (!i.has("add")) return e.b.mov32(e.dst(i.operands[0]), apart);
  // Two sums of two bytes, then one of four.
  const Slot c = e.src(i.operands[3], i.types[0]), sum = larger, odd = smaller;
  constexpr uint64_t kEven = 0x00ff00ff;
  e.b.ubfx(odd, apart, kEven, 8);
  e.b.andi64(sum, apart, kEven);
  e.b.add32(sum, sum, odd);
  e.b.lsri32(odd, sum, 16);
  e.b.add32(sum, sum, odd);
  e.b.andi64(sum, sum, 0xffff);
  e.b.add32(e.dst(i.operands[0]), sum, c);
}

// The SIMD video instructions: elements of two words, those of c where .add sums the results.
// PTX ISA, "SIMD Video Instructions". Elements have 64 bits on the way: no sum is too large.
class Elements {
 public:
  Elements(Emitter& e, I i) : e_(e), i_(i), bits_(i.base.back() == '2' ? 16 : 8) {}

  void emit() {
    // The destination may be a source.
    const Slot all = e_.temp(), t = e_.temp();
    const Slot a = e_.temp(), b = e_.temp();
    const bool is_sum = i_.has("add");
    const Slot x = e_.src(i_.operands[1], from(1)), y = e_.src(i_.operands[2], from(2));
    if (is_sum)
      e_.b.mov32(all, e_.src(i_.operands[3], i_.types[0]));
    else
      e_.b.mov32(all, e_.konst(0));
    for (int at = 0; at < 32; at += bits_) {
      const BlockBuilder::Temporaries own(e_.b);
      extract(a, x, at, from(1));
      extract(b, y, at, from(2));
      combine_elements(t, a, b);
      if (is_sum) {
        e_.b.add32(all, all, t);
        continue;
      }
      if (i_.has("sat")) saturate(e_, t, t, {i_.types[0].kind, static_cast<uint8_t>(bits_)});
      e_.zero_extend(t, t, bits_);
      e_.b.lsli64(t, t, static_cast<uint64_t>(at));
      e_.b.or64(all, all, t);
    }
    e_.b.mov32(e_.dst(i_.operands[0]), all);
  }

 private:
  // vset has no type of its result.
  Type from(size_t operand) const { return i_.types[is("vset") ? operand - 1 : operand]; }
  bool is(std::string_view name) const {
    return std::string_view(i_.base).substr(0, i_.base.size() - 1) == name;
  }

  void extract(Slot d, Slot word, int at, Type t) {
    e_.b.lsri64(d, word, static_cast<uint64_t>(at));
    if (t.is_signed())
      e_.sign_extend(d, d, bits_);
    else
      e_.zero_extend(d, d, bits_);
  }

  void combine_elements(Slot t, Slot a, Slot b) {
    const BlockBuilder::Temporaries own(e_.b);
    if (is("vadd")) return e_.b.add64(t, a, b);
    if (is("vsub")) return e_.b.sub64(t, a, b);
    if (is("vmin")) return e_.b.sel_cmp(t, a, b, a, b, kLess64);
    if (is("vmax")) return e_.b.sel_cmp(t, b, a, a, b, kLess64);
    if (is("vset")) return compare(t, a, b);
    const Slot other = e_.temp();
    if (is("vabsdiff")) {
      e_.b.sub64(other, b, a);
      e_.b.sub64(t, a, b);
      return e_.b.sel_cmp(t, other, t, a, b, kLess64);
    }
    // vavrg rounds away from zero at a half that is not below it.
    e_.b.add64(t, a, b);
    e_.b.addi64(other, t, 1);
    e_.b.sel_cmp(t, t, other, t, e_.konst(0), kLess64);
    e_.b.asri64(t, t, 1);
  }

  void compare(Slot t, Slot a, Slot b) {
    // le and gt are lt with the operands exchanged; ne, le and ge are the opposite of another.
    if (i_.has("le") || i_.has("gt")) std::swap(a, b);
    const bool is_opposite = i_.has("ne") || i_.has("le") || i_.has("ge");
    const bool is_equality = i_.has("eq") || i_.has("ne");
    e_.b.sel_cmp(t, e_.konst(is_opposite ? 0 : 1), e_.konst(is_opposite ? 1 : 0), a, b,
                 is_equality ? kEqual64 : kLess64);
  }

  Emitter& e_;
  I i_;
  int bits_;
};

void elements(Emitter& e, I i) { Elements(e, i).emit(); }

}  // namespace

const RowList& integer_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add {sat} .s32", "d0 s0 s0", kArithmetic, add},
      {"add .u16|.s16|.u32|.u64|.s64", "d0 s0 s0", kArithmetic, add},
      {"sub {sat} .s32", "d0 s0 s0", kArithmetic, sub},
      {"sub .u16|.s16|.u32|.u64|.s64", "d0 s0 s0", kArithmetic, sub},
      {"mul [lo|hi] .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, mul},
      {"mul [wide] .u16|.s16|.u32|.s32", "dw s0 s0", kArithmetic, mul},
      {"mad [lo|hi] .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0 s0", kArithmetic, mad},
      {"mad [hi] (sat) .s32", "d0 s0 s0 s0", kArithmetic, mad},
      {"mad [wide] .u16|.s16|.u32|.s32", "dw s0 s0 sw", kArithmetic, mad},
      {"mul24 [lo|hi] .u32|.s32", "d0 s0 s0", kArithmetic, mul24},
      {"mad24 [lo|hi] .u32|.s32", "d0 s0 s0 s0", kArithmetic, mul24},
      {"mad24 [hi] (sat) .s32", "d0 s0 s0 s0", kArithmetic, mul24},
      {"div .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0", kDivision, divide},
      {"rem .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0", kDivision, divide},
      {"abs .s16|.s32|.s64", "d0 s0", kArithmetic, abs_neg},
      {"neg .s16|.s32|.s64", "d0 s0", kArithmetic, abs_neg},
      {"min .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, min_max},
      {"max .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, min_max},
      {"sad .u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s0 s0", kArithmetic, sad},
      {"vabsdiff4 {add} .u32 .u32 .u32", "d0 d1 d1 d0", kArithmetic, differences},
      {"vabsdiff4 {add} .u32 .s32 .s32", "d0 d1 d1 d0", kArithmetic, differences},
      // .add of others: how wide their results are before they are summed is not published.
      {"vabsdiff2 {add} .u32 .u32 .u32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vabsdiff2 {add} .u32 .s32 .s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vabsdiff2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vabsdiff4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vadd2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vadd4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vsub2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vsub4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vavrg2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vavrg4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vmin2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vmin4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vmax2 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vmax4 {sat} .u32|.s32 .u32|.s32 .u32|.s32", "d0 d1 d1 d0", kArithmetic, elements},
      {"vset2 (eq|ne|lt|le|gt|ge) {add} .u32|.s32 .u32|.s32", "d0 d0 d1 d0", kArithmetic, elements},
      {"vset4 (eq|ne|lt|le|gt|ge) {add} .u32|.s32 .u32|.s32", "d0 d0 d1 d0", kArithmetic, elements},
      {"dp4a .u32|.s32 .u32|.s32", "d0 s0 s1 s0", kArithmetic, dot},
      {"dp2a [lo|hi] .u32|.s32 .u32|.s32", "d0 s0 s1 s0", kArithmetic, dot},
  };
  return rows;
}

}  // namespace gpusim::ptx
