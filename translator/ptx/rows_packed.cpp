// Pairs of integers of 16 bits, and minima and maxima that are not negative.
#include "device_sim/uir/compare.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

// Of integers with a sign, in 64 bits.
void relu(Emitter& e, Slot d) { e.b.sel_cmpi(d, kZeroSlot, d, d, 0, kLess64); }

// d is neither a nor b.
void compute(Emitter& e, I i, Slot d, Slot a, Slot b) {
  if (i.base == "add") return e.b.add64(d, a, b);
  const bool is_min = i.base == "min";
  e.b.sel_cmp(d, is_min ? a : b, is_min ? b : a, a, b, i.type().is_signed() ? kLess64 : kBelow64);
  if (i.has("relu")) relu(e, d);
}

void pairs(Emitter& e, I i) {
  const Type t = i.type();
  const Slot x = e.src(i.operands[1], t), y = e.src(i.operands[2], t);
  const Slot a = e.temp(), b = e.temp(), results[2] = {e.temp(), e.temp()};
  for (int half = 0; half < 2; ++half) {
    const auto take = [&](Slot d, Slot s) {
      e.b.ubfx(d, s, 0xffff, static_cast<uint8_t>(16 * half));
      if (t.is_signed()) e.sign_extend(d, d, 16);
    };
    take(a, x);
    take(b, y);
    compute(e, i, results[half], a, b);
    e.b.andi64(results[half], results[half], 0xffff);
  }
  e.b.add_lsl64(e.dst(i.operands[0]), results[0], results[1], 16);
}

void min_max_relu(Emitter& e, I i) {
  const Slot a = e.src_signed(i.operands[1], i.type()), b = e.src_signed(i.operands[2], i.type());
  const Slot d = e.temp();
  compute(e, i, d, a, b);
  e.zero_extend(e.dst(i.operands[0]), d, 32);
}

}  // namespace

const RowList& packed_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add .u16x2|.s16x2", "d0 s0 s0", kArithmetic, pairs},
      {"min .u16x2", "d0 s0 s0", kArithmetic, pairs},
      {"max .u16x2", "d0 s0 s0", kArithmetic, pairs},
      {"min {relu} .s16x2", "d0 s0 s0", kArithmetic, pairs},
      {"max {relu} .s16x2", "d0 s0 s0", kArithmetic, pairs},
      {"min (relu) .s32", "d0 s0 s0", kArithmetic, min_max_relu},
      {"max (relu) .s32", "d0 s0 s0", kArithmetic, min_max_relu},
  };
  return rows;
}

}  // namespace gpusim::ptx
