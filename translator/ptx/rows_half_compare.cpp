// Comparisons of f16 and bf16, alone and in pairs. bf16 is widened to singles, which is exact.
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

bool is_bfloat(Type t) { return t.kind == Kind::kBits; }

// Whether the comparison holds for one half of both words, as 0 or 1.
Slot truth_of(Emitter& e, I i, Slot x, Slot y, int half) {
  const Slot a = e.temp(), b = e.temp();
  const bool widens = is_bfloat(i.types.back());
  const auto take = [&](Slot d, Slot s) {
    e.b.ubfx(d, s, 0xffff, static_cast<uint8_t>(16 * half));
    if (widens) e.b.lsli64(d, d, 16);
  };
  take(a, x);
  take(b, y);
  const FpFormat format = widens ? FpFormat::kF32 : FpFormat::kF16;
  e.fp(Op::fcmp, e.state(i), a, a, b, 0, static_cast<uint8_t>(format));
  e.b.set_if(a, a, truth_table(i));
  return a;
}

// Of pairs, p is of the lower halves and q of the upper ones.
void setp(Emitter& e, I i) {
  const Type t = i.type();
  const Operand& out = i.operands[0];
  const Slot x = e.src(i.operands[1], t), y = e.src(i.operands[2], t);
  const auto result = [&](int half) {
    const Slot truth = truth_of(e, i, x, y, half);
    if (i.operands.size() == 4) combine(e, i, truth, truth, i.operands[3]);
    return truth;
  };
  const Slot low = result(0);
  if (!out.is(Operand::Kind::kPair)) return e.set_predicates(out, low);
  const Slot high = result(1);
  if (!e.is_sink(out.elements[0])) e.set_predicates(out.elements[0], low);
  if (!e.is_sink(out.elements[1])) e.set_predicates(out.elements[1], high);
}

// 1.0 or all ones where the comparison holds.
void set(Emitter& e, I i) {
  const Type to = i.types[0], from = i.types[1];
  const bool is_mask = to.kind == Kind::kUnsigned || to.kind == Kind::kSigned;
  const uint64_t yes = is_mask         ? ones(from.is_packed ? 16 : to.bits)
                       : is_bfloat(to) ? 0x3f80
                                       : 0x3c00;
  const Slot x = e.src(i.operands[1], from), y = e.src(i.operands[2], from);
  Slot results[2] = {kZeroSlot, kZeroSlot};
  for (int half = 0; half < (from.is_packed ? 2 : 1); ++half) {
    const Slot truth = truth_of(e, i, x, y, half);
    if (i.operands.size() == 4) combine(e, i, truth, truth, i.operands[3]);
    e.b.sel_cmpi(truth, kZeroSlot, e.konst(yes), truth, 0, kEqual64);
    results[half] = truth;
  }
  if (from.is_packed) e.b.add_lsl64(results[0], results[0], results[1], 16);
  e.b.mov(e.dst(i.operands[0]), results[0]);
}

}  // namespace

#define GPUSIM_PTX_COMPARISONS "(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)"

const RowList& half_compare_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"setp " GPUSIM_PTX_COMPARISONS " {ftz} .f16", "dp s0 s0", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " (and|or|xor) {ftz} .f16", "dp s0 s0 sp", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " {ftz} .f16x2", "dpq s0 s0", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " (and|or|xor) {ftz} .f16x2", "dpq s0 s0 sp", kComparison,
       setp},
      {"setp " GPUSIM_PTX_COMPARISONS " .bf16", "dp s0 s0", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " (and|or|xor) .bf16", "dp s0 s0 sp", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " .bf16x2", "dpq s0 s0", kComparison, setp},
      {"setp " GPUSIM_PTX_COMPARISONS " (and|or|xor) .bf16x2", "dpq s0 s0 sp", kComparison, setp},
      {"set " GPUSIM_PTX_COMPARISONS " {ftz} .f16|.u16|.s16|.u32|.s32 .f16", "d0 s1 s1",
       kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " .bf16 .f16", "d0 s1 s1", kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " .bf16|.u16|.s16|.u32|.s32 .bf16", "d0 s1 s1", kComparison,
       set},
      {"set " GPUSIM_PTX_COMPARISONS " {ftz} .f16x2|.u32|.s32 .f16x2", "d0 s1 s1", kComparison,
       set},
      {"set " GPUSIM_PTX_COMPARISONS " .bf16x2|.u32|.s32 .bf16x2", "d0 s1 s1", kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " (and|or|xor) {ftz} .f16|.u16|.s16|.u32|.s32 .f16",
       "d0 s1 s1 sp", kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " (and|or|xor) .bf16 .f16", "d0 s1 s1 sp", kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " (and|or|xor) .bf16|.u16|.s16|.u32|.s32 .bf16", "d0 s1 s1 sp",
       kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " (and|or|xor) {ftz} .f16x2|.u32|.s32 .f16x2", "d0 s1 s1 sp",
       kComparison, set},
      {"set " GPUSIM_PTX_COMPARISONS " (and|or|xor) .bf16x2|.u32|.s32 .bf16x2", "d0 s1 s1 sp",
       kComparison, set},
  };
  return rows;
}

}  // namespace gpusim::ptx
