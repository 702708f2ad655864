// Logic, shifts, fields of bits.
#include "device_sim/uir/compare.h"
#include "device_sim/uir/helpers.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

void logic(Emitter& e, I i) {
  const Type t = i.type();
  const Operand *x = &i.operands[1], *y = &i.operands[2];
  if (e.constant(*x, t)) std::swap(x, y);
  const Slot a = e.src(*x, t);
  const char op = i.base[0];
  if (const auto c = e.constant(*y, t)) {
    const Slot d = e.dst(i.operands[0]);
    if (op == 'a')
      e.b.andi64(d, a, *c);
    else if (op == 'o')
      e.b.ori64(d, a, *c);
    else
      e.b.xori64(d, a, *c);
    return;
  }
  const Slot c = e.src(*y, t), d = e.dst(i.operands[0]);
  if (op == 'a')
    e.b.and64(d, a, c);
  else if (op == 'o')
    e.b.or64(d, a, c);
  else
    e.b.xor64(d, a, c);
}

void invert(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t);
  e.b.xori64(e.dst(i.operands[0]), a, ones(t.bits));
}

void cnot(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type());
  e.b.sel_cmpi(e.dst(i.operands[0]), kOneSlot, kZeroSlot, a, 0, kEqual64);
}

Slot lop3_value(Emitter& e, I i) {
  const Type t = i.type();
  const Slot s[3] = {e.src(i.operands[1], t), e.src(i.operands[2], t), e.src(i.operands[3], t)};
  const auto lut = e.constant(i.operands[4], t);
  if (!lut) e.unsupported(i, "the table is a constant");  // of which ptxas takes 8 bits
  Slot n[3];
  for (int k = 0; k < 3; ++k) e.b.xori64(n[k] = e.temp(), s[k], ones(32));
  const Slot sum = e.temp(), term = e.temp();
  e.b.konst(sum, 0);
  for (unsigned m = 0; m < 8; ++m) {
    if ((*lut >> m & 1) == 0) continue;
    e.b.and64(term, m & 4 ? s[0] : n[0], m & 2 ? s[1] : n[1]);
    e.b.and64(term, term, m & 1 ? s[2] : n[2]);
    e.b.or64(sum, sum, term);
  }
  return sum;
}

void lop3(Emitter& e, I i) {
  const Slot value = lop3_value(e, i);
  e.b.mov(e.dst(i.operands[0]), value);
}

// d|p: p is whether d is not zero, combined with another predicate.
void lop3_and_test(Emitter& e, I i) {
  const Slot value = lop3_value(e, i), other = e.src(i.operands[5], kPredicateType);
  const Slot truth = e.temp();
  e.b.sel_cmpi(truth, kZeroSlot, kOneSlot, value, 0, kEqual64);
  if (i.has("and"))
    e.b.and64(truth, truth, other);
  else
    e.b.or64(truth, truth, other);
  const Operand &d = i.operands[0].elements[0], &p = i.operands[0].elements[1];
  if (!e.is_sink(d)) e.b.mov(e.dst(d), value);
  e.set_predicates(p, truth);
}

void shift_left(Emitter& e, I i) {
  const Type t = i.type(), count{Kind::kUnsigned, 32};
  const Slot a = e.src(i.operands[1], t);
  if (const auto n = e.constant(i.operands[2], count)) {
    const Slot d = e.dst(i.operands[0]);
    if (*n >= t.bits)
      e.b.konst(d, 0);
    else if (t.bits == 64)
      e.b.lsli64(d, a, *n);
    else
      e.b.lsli32(d, a, *n);
    return trim(e, d, t);
  }
  const Slot n = e.reg(i.operands[2]), d = e.dst(i.operands[0]);
  if (t.bits == 64)
    e.b.lslc64(d, a, n);
  else
    e.b.lslc32(d, a, n);
  trim(e, d, t);
}

void shift_right(Emitter& e, I i) {
  const Type t = i.type(), count{Kind::kUnsigned, 32};
  const bool is_signed = t.is_signed();
  const Slot a =
      is_signed && t.bits < 32 ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  if (const auto known = e.constant(i.operands[2], count)) {
    const uint64_t n = is_signed ? std::min<uint64_t>(*known, t.bits - 1u) : *known;
    const Slot d = e.dst(i.operands[0]);
    if (n >= t.bits)
      e.b.konst(d, 0);
    else if (is_signed && t.bits == 32)
      e.b.asri32(d, a, n);
    else if (is_signed)
      e.b.asri64(d, a, n);
    else if (t.bits == 32)
      e.b.lsri32(d, a, n);
    else
      e.b.lsri64(d, a, n);
    return trim(e, d, t);
  }
  const Slot n = e.reg(i.operands[2]), d = e.dst(i.operands[0]);
  if (is_signed && t.bits == 32)
    e.b.asrc32(d, a, n);
  else if (is_signed)
    e.b.asrc64(d, a, n);
  else if (t.bits == 64)
    e.b.lsrc64(d, a, n);
  else
    e.b.lsrc32(d, a, n);
  trim(e, d, t);
}

// shf: the pair b:a shifted; left takes its upper half.
void funnel(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t), pair = e.temp();
  const Slot c = e.src(i.operands[3], t), n = e.temp();
  e.b.add_lsl64(pair, a, b, 32);
  if (i.has("wrap"))
    e.b.andi64(n, c, 31);
  else
    e.b.sel_cmpi(n, c, e.konst(32), c, 32, kBelow32);
  if (i.has("l")) {
    e.b.lsl64(pair, pair, n);
    e.b.lsri64(e.dst(i.operands[0]), pair, 32);
  } else {
    e.b.lsr64(pair, pair, n);
    e.b.mov32(e.dst(i.operands[0]), pair);
  }
}

// --- bits
void popc(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type()), t = e.temp();
  e.b.vcnt(t, a);
  e.b.mul64(t, t, e.konst(0x0101010101010101));
  e.b.lsri64(e.dst(i.operands[0]), t, 56);
}

void clz(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type());
  if (i.type().bits == 64)
    e.b.clz64(e.dst(i.operands[0]), a);
  else
    e.b.clz32(e.dst(i.operands[0]), a);
}

void brev(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type());
  if (i.type().bits == 64)
    e.b.rbit64(e.dst(i.operands[0]), a);
  else
    e.b.rbit32(e.dst(i.operands[0]), a);
}

// The highest bit that is not the sign; all ones if there is none. shiftamt: its distance from the
// top.
void bfind(Emitter& e, I i) {
  const Type t = i.type();
  const Slot s = t.is_signed() ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  const Slot bits = e.temp(), zeros = e.temp(), place = e.temp();
  if (t.is_signed()) {
    e.b.asri64(bits, s, 63);
    e.b.xor64(bits, bits, s);
  } else {
    e.b.mov(bits, s);
  }
  e.b.clz64(zeros, bits);
  if (i.has("shiftamt"))
    e.b.addi64(place, zeros, t.bits == 64 ? 0 : ~uint64_t{31});
  else
    e.b.sub64(place, e.konst(63), zeros);
  const Slot all = e.konst(ones(32));
  e.b.sel_cmpi(e.dst(i.operands[0]), all, place, zeros, 64, kEqual64);
}

// d = a >= least ? instead : a, of small unsigned numbers
void limit(Emitter& e, Slot d, Slot a, uint64_t most) {
  e.b.sel_cmpi(d, a, e.konst(most), a, most, kBelow64);
}

void bfe(Emitter& e, I i) {
  const Type t = i.type(), small{Kind::kUnsigned, 32};
  const Slot a = t.is_signed() ? e.src_signed(i.operands[1], t) : e.src(i.operands[1], t);
  const Slot pos = e.temp(), length = e.temp(), up = e.temp(), field = e.temp();
  e.b.andi64(pos, e.src(i.operands[2], small), 255);
  e.b.andi64(length, e.src(i.operands[3], small), 255);
  if (t.is_signed()) {
    limit(e, up, pos, 63);
    e.b.asr64(field, a, up);
  } else {
    e.b.lsr64(field, a, pos);
    e.b.sel_cmpi(field, field, kZeroSlot, pos, 64, kBelow64);
  }
  // Shifting up by 64 would be by 0: an empty field is set apart.
  limit(e, up, length, 64);
  e.b.sub64(up, e.konst(64), up);
  e.b.lsl64(field, field, up);
  if (t.is_signed())
    e.b.asr64(field, field, up);
  else
    e.b.lsr64(field, field, up);
  e.b.sel_cmpi(field, kZeroSlot, field, length, 0, kEqual64);
  e.zero_extend(e.dst(i.operands[0]), field, t.bits);
}

void bfi(Emitter& e, I i) {
  const Type t = i.type(), small{Kind::kUnsigned, 32};
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
  const Slot pos = e.temp(), length = e.temp(), mask = e.temp(), field = e.temp();
  e.b.andi64(pos, e.src(i.operands[3], small), 255);
  e.b.andi64(length, e.src(i.operands[4], small), 255);
  const Slot all = e.konst(~uint64_t{0});
  e.b.lsl64(mask, kOneSlot, length);
  e.b.addi64(mask, mask, ~uint64_t{0});
  e.b.sel_cmpi(mask, mask, all, length, 64, kBelow64);
  e.b.lsl64(mask, mask, pos);
  e.b.lsl64(field, a, pos);
  e.b.sel_cmpi(mask, mask, kZeroSlot, pos, 64, kBelow64);
  e.b.and64(field, field, mask);
  e.b.bic64(mask, b, mask);
  e.b.or64(field, field, mask);
  e.zero_extend(e.dst(i.operands[0]), field, t.bits);
}

// The modes of prmt, from 1 on as the helper numbers them.
constexpr const char* kPermutations[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};

// Without a mode each digit of the selector names a byte of b:a; its top bit repeats the byte's
// sign.
void prmt(Emitter& e, I i) {
  const Type t = i.type();
  const auto selector = e.constant(i.operands[3], t);
  uint64_t mode = 0;
  for (size_t k = 0; k < std::size(kPermutations); ++k)
    if (i.has(kPermutations[k])) mode = k + 1;
  if (mode != 0) {
    const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t),
               c = e.src(i.operands[3], t);
    e.b.help3(e.dst(i.operands[0]), a, b, c, mode, 0, helper_number(Helper3::permute_bytes));
    return;
  }
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t), pair = e.temp();
  e.b.add_lsl64(pair, a, b, 32);
  const Slot byte = e.temp(), sum = e.temp();
  e.b.konst(sum, 0);
  if (!selector) {
    const Slot c = e.src(i.operands[3], t), from = e.temp(), sign = e.temp();
    for (unsigned k = 0; k < 4; ++k) {
      e.b.ubfx(from, c, 7, static_cast<uint8_t>(4 * k));
      e.b.lsli64(from, from, 3);
      e.b.lsr64(byte, pair, from);
      e.b.sbf64(sign, byte, 56, 63);  // of the byte's top bit
      e.b.ubfx(from, c, 1, static_cast<uint8_t>(4 * k + 3));
      e.b.sel_cmpi(byte, byte, sign, from, 0, kEqual64);
      e.b.andi64(byte, byte, 255);
      e.b.add_lsl64(sum, sum, byte, 8 * k);
    }
    e.b.mov(e.dst(i.operands[0]), sum);
    return;
  }
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned digit = *selector >> 4 * k & 15;
    const auto from = static_cast<uint8_t>(8 * (digit & 7));
    if ((digit & 8) != 0) {
      e.b.sbf64(byte, pair, 56u - from, 63);
      e.b.andi64(byte, byte, 255);
    } else {
      e.b.ubfx(byte, pair, 255, from);
    }
    e.b.add_lsl64(sum, sum, byte, 8 * k);
  }
  e.b.mov(e.dst(i.operands[0]), sum);
}

void bmsk(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type()), b = e.src(i.operands[2], i.type());
  const Slot position = e.temp(), length = e.temp(), mask = e.temp();
  if (i.has("clamp")) {
    limit(e, position, a, 32);
    limit(e, length, b, 32);
  } else {
    e.b.andi64(position, a, 31);
    e.b.andi64(length, b, 31);
  }
  e.b.lsl64(mask, kOneSlot, length);
  e.b.addi64(mask, mask, ~uint64_t{0});
  e.b.lsl64(mask, mask, position);
  e.b.andi64(e.dst(i.operands[0]), mask, ones(32));
}

// The low bits of a, b of them, extended. Clamped, 32 and more leave a as it is; else b is taken
// modulo 32, and no bits are zero.
void szext(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], i.type()), b = e.src(i.operands[2], {Kind::kUnsigned, 32});
  const Slot count = e.temp(), mask = e.temp(), field = e.temp(), sign = e.temp();
  e.b.andi64(count, b, 31);
  e.b.lsl64(mask, e.konst(ones(32)), count);
  e.b.andi64(mask, mask, ones(32));
  if (i.has("clamp")) e.b.sel_cmpi(mask, mask, kZeroSlot, b, 32, kBelow64);
  e.b.bic64(field, a, mask);
  if (i.type().is_signed()) {
    e.b.lsli64(sign, a, 1);  // of which bit `count` is the sign; of no bits, a zero
    e.b.lsr64(sign, sign, count);
    e.b.andi64(sign, sign, 1);
    e.b.sel_cmpi(mask, kZeroSlot, mask, sign, 0, kEqual64);
    e.b.or64(field, field, mask);
  }
  e.b.mov(e.dst(i.operands[0]), field);
}

// The bit that is `offset` set bits from bit `base` on, upwards or downwards, or all ones: halves
// of what is left are taken or left out by how many bits they have.
void find_nth_set(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), base = e.src(i.operands[2], {Kind::kUnsigned, 32}),
             offset = e.src_signed(i.operands[3], {Kind::kSigned, 32});
  const Slot bits = e.temp(), n = e.temp(), from = e.temp(), other = e.temp();
  // Downwards is upwards with the bits in reverse.
  e.b.rbit32(bits, a);
  e.b.sel_cmpi(bits, bits, a, offset, 0, kLess64);
  e.b.xori64(from, base, 31);
  e.b.sel_cmpi(from, from, base, offset, 0, kLess64);
  e.b.andi64(from, from, 31);
  e.b.lsr64(bits, bits, from);
  e.b.sub64(n, kZeroSlot, offset);
  e.b.sel_cmpi(n, n, offset, offset, 0, kLess64);
  // No offset: is that bit set?
  e.b.andi64(other, bits, 1);
  e.b.sel_cmpi(bits, other, bits, n, 0, kEqual64);
  e.b.sel_cmpi(n, kOneSlot, n, n, 0, kEqual64);
  const Slot low = e.temp(), count = e.temp(), place = e.temp(),
             ones_of = e.konst(0x0101010101010101);
  e.b.mov(place, from);
  for (const int half : {16, 8, 4, 2, 1}) {
    e.b.andi64(low, bits, ones(half));
    e.b.vcnt(count, low);
    e.b.mul64(count, count, ones_of);
    e.b.lsri64(count, count, 56);
    e.b.lsri64(low, bits, static_cast<uint64_t>(half));
    e.b.addi64(other, place, static_cast<uint64_t>(half));
    // count < n: it is above.
    e.b.sel_cmp(bits, low, bits, count, n, kBelow64);
    e.b.sel_cmp(place, other, place, count, n, kBelow64);
    e.b.sub64(other, n, count);
    e.b.sel_cmp(n, other, n, count, n, kBelow64);
  }
  e.b.xori64(other, place, 31);
  e.b.sel_cmpi(place, other, place, offset, 0, kLess64);
  const Slot none = e.konst(ones(32));
  e.b.andi64(bits, bits, 1);
  e.b.sel_cmpi(place, none, place, bits, 0, kEqual64);
  e.b.sel_cmpi(place, place, none, n, 1, kEqual64);
  e.b.sel_cmpi(e.dst(i.operands[0]), place, none, base, 32, kBelow64);
}

}  // namespace

const RowList& bit_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"and .pred|.b16|.b32|.b64", "d0 s0 s0", kLogical, logic},
      {"or .pred|.b16|.b32|.b64", "d0 s0 s0", kLogical, logic},
      {"xor .pred|.b16|.b32|.b64", "d0 s0 s0", kLogical, logic},
      {"not .pred|.b16|.b32|.b64", "d0 s0", kLogical, invert},
      {"cnot .b16|.b32|.b64", "d0 s0", kLogical, cnot},
      {"lop3 .b32", "d0 s0 s0 s0 i", kLogical, lop3},
      {"lop3 (and|or) .b32", "dl s0 s0 s0 i sp", kLogical, lop3_and_test},
      {"szext (clamp|wrap) .u32|.s32", "d0 s0 s32", kLogical, szext},
      {"shl .b16|.b32|.b64", "d0 s0 s32", kLogical, shift_left},
      {"shr .b16|.b32|.b64|.u16|.s16|.u32|.s32|.u64|.s64", "d0 s0 s32", kLogical, shift_right},
      {"shf [l|r] (clamp|wrap) .b32", "d0 s0 s0 s32", kLogical, funnel},
      {"popc .b32|.b64", "d32 s0", kLogical, popc},
      {"clz .b32|.b64", "d32 s0", kLogical, clz},
      {"brev .b32|.b64", "d0 s0", kLogical, brev},
      {"bfind {shiftamt} .u32|.s32|.u64|.s64", "d32 s0", kLogical, bfind},
      {"bfe .u32|.s32|.u64|.s64", "d0 s0 s32 s32", kLogical, bfe},
      {"bfi .b32|.b64", "d0 s0 s0 s32 s32", kLogical, bfi},
      {"prmt {f4e|b4e|rc8|ecl|ecr|rc16} .b32", "d0 s0 s0 s0", kLogical, prmt},
      {"fns .b32", "d0 s0 s32 s32", kLogical, find_nth_set},
      {"bmsk (clamp|wrap) .b32", "d32 s32 s32", kLogical, bmsk},
  };
  return rows;
}

}  // namespace gpusim::ptx
