// Integer comparisons, and selections.
#include "device_sim/uir/compare.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

struct Comparison {
  CompareRelation relation;
  bool swapped, inverted;
};
Comparison comparison(I i, bool is_signed) {
  const auto less = is_signed ? CompareRelation::kLessSigned : CompareRelation::kLessUnsigned;
  if (i.has("eq")) return {CompareRelation::kEqual, false, false};
  if (i.has("ne")) return {CompareRelation::kEqual, false, true};
  if (i.has("lt") || i.has("lo")) return {less, false, false};
  if (i.has("ge") || i.has("hs")) return {less, false, true};
  if (i.has("gt") || i.has("hi")) return {less, true, false};
  return {less, true, true};
}

CompareFact compare_operands(Emitter& e, I i, const Operand& x, const Operand& y) {
  const Type t = i.types.back();
  const Comparison c = comparison(i, t.is_signed());
  const bool is_extended = t.is_signed() && t.bits < 32;
  const auto source = [&](const Operand& o) {
    return is_extended ? e.src_signed(o, t) : e.src(o, t);
  };
  CompareFact f{.relation = c.relation, .is_32bit = t.bits == 32, .is_inverted = c.inverted};
  const auto known = e.constant(y, t);
  const auto value =
      known ? static_cast<int64_t>(t.bits == 32 ? static_cast<int64_t>(static_cast<int32_t>(*known))
                                                : static_cast<int64_t>(*known))
            : 0;
  if (known && !c.swapped && t.bits >= 32 && value == static_cast<int16_t>(value)) {
    f.x = source(x);
    f.imm = static_cast<int16_t>(value);
    return f;
  }
  f.x = source(c.swapped ? y : x);
  f.y = source(c.swapped ? x : y);
  return f;
}

Slot truth_of(Emitter& e, const CompareFact& f) {
  const Slot truth = e.temp();
  const Slot yes = f.is_inverted ? kZeroSlot : kOneSlot, no = f.is_inverted ? kOneSlot : kZeroSlot;
  const uint8_t kind = compare_kind(f.relation, f.is_32bit);
  if (f.imm)
    e.b.sel_cmpi(truth, yes, no, f.x, static_cast<uint64_t>(int64_t{*f.imm}), kind);
  else
    e.b.sel_cmp(truth, yes, no, f.x, f.y, kind);
  return truth;
}

void setp(Emitter& e, I i) {
  const CompareFact f = compare_operands(e, i, i.operands[1], i.operands[2]);
  const Operand& out = i.operands[0];
  if (i.operands.size() == 3) return e.set_predicate(out, f);
  const Slot truth = truth_of(e, f), first = e.temp();
  combine(e, i, first, truth, i.operands[3]);
  if (!out.is(Operand::Kind::kPair)) return e.set_predicates(out, first);
  const Slot second = e.temp(), inverse = e.temp();
  e.b.xori64(inverse, truth, 1);
  combine(e, i, second, inverse, i.operands[3]);
  e.set_predicates(out.elements[0], first);
  e.set_predicates(out.elements[1], second);
}

void set(Emitter& e, I i) {
  const Slot truth = truth_of(e, compare_operands(e, i, i.operands[1], i.operands[2]));
  if (i.operands.size() == 4) combine(e, i, truth, truth, i.operands[3]);
  const Type t = i.type(0);
  const uint64_t yes = t.is_float() ? 0x3f800000 : ones(32);
  e.b.sel_cmpi(e.dst(i.operands[0]), kZeroSlot, e.konst(yes), truth, 0, kEqual64);
}

void selp(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
  e.select(e.dst(i.operands[0]), a, b, i.operands[3]);
}

void slct(Emitter& e, I i) {
  const Type t = i.type();
  const Slot a = e.src(i.operands[1], t), b = e.src(i.operands[2], t);
  const Slot c = e.src(i.operands[3], i.types[1]);
  e.b.sel_cmpi(e.dst(i.operands[0]), b, a, c, 0, compare_kind(CompareRelation::kLessSigned, true));
}

}  // namespace

const RowList& compare_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"setp (eq|ne) .b16|.b32|.b64", "dpq s0 s0", kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge) .s16|.s32|.s64", "dpq s0 s0", kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge|lo|ls|hi|hs) .u16|.u32|.u64", "dpq s0 s0", kComparison, setp},
      {"setp (eq|ne) (and|or|xor) .b16|.b32|.b64", "dpq s0 s0 sp", kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge) (and|or|xor) .s16|.s32|.s64", "dpq s0 s0 sp", kComparison, setp},
      {"setp (eq|ne|lt|le|gt|ge|lo|ls|hi|hs) (and|or|xor) .u16|.u32|.u64", "dpq s0 s0 sp",
       kComparison, setp},
      {"set (eq|ne) .u32|.s32|.f32 .b16|.b32|.b64", "d0 s1 s1", kComparison, set},
      {"set (eq|ne|lt|le|gt|ge) .u32|.s32|.f32 .s16|.s32|.s64", "d0 s1 s1", kComparison, set},
      {"set (eq|ne|lt|le|gt|ge|lo|ls|hi|hs) .u32|.s32|.f32 .u16|.u32|.u64", "d0 s1 s1", kComparison,
       set},
      {"set (eq|ne) (and|or|xor) .u32|.s32|.f32 .b16|.b32|.b64", "d0 s1 s1 sp", kComparison, set},
      {"set (eq|ne|lt|le|gt|ge) (and|or|xor) .u32|.s32|.f32 .s16|.s32|.s64", "d0 s1 s1 sp",
       kComparison, set},
      {"set (eq|ne|lt|le|gt|ge|lo|ls|hi|hs) (and|or|xor) .u32|.s32|.f32 .u16|.u32|.u64",
       "d0 s1 s1 sp", kComparison, set},
      {"selp .b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64", "d0 s0 s0 sp", kLogical,
       selp},
      {"slct .b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64 .s32", "d0 s0 s0 s1", kLogical,
       slct},
  };
  return rows;
}

}  // namespace gpusim::ptx
