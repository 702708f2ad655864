// Arithmetic on numbers of several words: add.cc, addc, sub.cc, subc, mad.cc, madc. The carry, or
// the borrow of a subtraction, is a slot that holds 0 or 1.
#include "device_sim/uir/compare.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

bool takes_carry(I i) { return i.base.ends_with('c'); }  // addc, subc, madc

void below(Emitter& e, Slot d, Slot a, Slot b) {
  const CompareKind kind{CompareRelation::kLessUnsigned, false, false};
  e.b.sel_cmp(d, kOneSlot, kZeroSlot, a, b, kind.pack());
}

// d = a + b, with the carry as the instruction has it.
void sum(Emitter& e, I i, Slot a, Slot b) {
  const Type t = i.type();
  const Slot total = e.temp(), carry = e.temp();
  e.b.add64(total, a, b);
  if (t.bits <= 32) {
    if (takes_carry(i)) e.b.add64(total, total, kCarrySlot);
    e.b.lsri64(carry, total, 32);
  } else {
    below(e, carry, total, a);
    if (takes_carry(i)) {
      const Slot more = e.temp(), second = e.temp();
      e.b.add64(more, total, kCarrySlot);
      below(e, second, more, total);
      e.b.or64(carry, carry, second);
      e.b.mov(total, more);
    }
  }
  if (i.has("cc")) e.b.mov(kCarrySlot, carry);
  e.zero_extend(e.dst(i.operands[0]), total, t.bits);
}

void add(Emitter& e, I i) {
  sum(e, i, e.src(i.operands[1], i.type()), e.src(i.operands[2], i.type()));
}

void subtract(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
  const Slot total = e.temp(), borrow = e.temp();
  e.b.sub64(total, a, b);
  below(e, borrow, a, b);
  if (takes_carry(i)) {
    const Slot second = e.temp();
    below(e, second, total, kCarrySlot);
    e.b.sub64(total, total, kCarrySlot);
    // Of 32 bits: a and b are below 2^32, so that `total` is not unless there was a borrow.
    e.b.or64(borrow, borrow, second);
  }
  if (i.has("cc")) e.b.mov(kCarrySlot, borrow);
  e.zero_extend(e.dst(i.operands[0]), total, t.bits);
}

void multiply(Emitter& e, I i) {
  const Type t = i.type();
  const bool is_short = t.bits == 16;
  const auto source = [&](const Operand& o) {
    return is_short && t.is_signed() ? e.src_signed(o, t) : e.src(o, t);
  };
  const Slot a = source(i.operands[1]), b = source(i.operands[2]), part = e.temp();
  if (is_short) {
    e.b.mul64(part, a, b);
    e.b.ubfx(part, part, 0xffff, i.has("lo") ? 0 : 16);
  } else if (t.bits == 64) {
    if (i.has("lo"))
      e.b.mul64(part, a, b);
    else if (t.is_signed())
      e.b.smulh(part, a, b);
    else
      e.b.umulh(part, a, b);
  } else {
    if (t.is_signed())
      e.b.smaddl(part, a, b, kZeroSlot);
    else
      e.b.umaddl(part, a, b, kZeroSlot);
    e.b.ubfx(part, part, 0xffffffff, i.has("lo") ? 0 : 32);
  }
  sum(e, i, part, e.src(i.operands[3], t));
}

}  // namespace

const RowList& carry_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add (cc) .u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, add},
      {"addc {cc} .u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, add},
      {"addc .u16|.s16", "d0 s0 s0", kArithmetic, add},
      {"sub (cc) .u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, subtract},
      {"subc {cc} .u32|.s32|.u64|.s64", "d0 s0 s0", kArithmetic, subtract},
      {"subc .u16|.s16", "d0 s0 s0", kArithmetic, subtract},
      {"mad [lo|hi] (cc) .u32|.s32|.u64|.s64", "d0 s0 s0 s0", kArithmetic, multiply},
      {"madc [lo|hi] {cc} .u32|.s32|.u64|.s64", "d0 s0 s0 s0", kArithmetic, multiply},
      {"madc [lo|hi] .u16|.s16", "d0 s0 s0 s0", kArithmetic, multiply},
  };
  return rows;
}

}  // namespace gpusim::ptx
