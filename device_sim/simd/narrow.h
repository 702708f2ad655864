// Which micro-ops may run on 32-bit lanes. A slot whose values are words of 32 bits, zero-extended
// or sign-extended, is kept in a row of half the size: half the loads and stores, which is what an
// interpreter on SIMD lanes waits for.
#pragma once
#include "device_sim/simd/affine.h"
#include "device_sim/uir/compare.h"
#include "device_sim/uir/uop.h"

namespace gpusim::simd {

// What is known of 64-bit values: that they are 32-bit ones with zeros above, with the sign above,
// or both (below 2^31); 0: nothing. A row of words has one of the first two (Kind in group.h).
using Words = uint8_t;
inline constexpr Words kZeroAbove = 4, kSignAbove = 8, kBothAbove = kZeroAbove | kSignAbove;

constexpr Words words_of(uint64_t value) {
  const auto extended = static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
  return static_cast<Words>((value >> 32 == 0 ? kZeroAbove : 0) |
                            (value == extended ? kSignAbove : 0));
}
// Of all lanes of a compact value.
constexpr Words words_of(Compact x, uint32_t last) {
  if (x.stride == 0) return words_of(x.base);
  Compact low;
  return words_of(x.base) &
         static_cast<Words>((low32(x, last, low) ? kZeroAbove : 0) |
                            (sext32(x, last, low) ? kSignAbove : 0));
}

// What 32-bit lanes give.
struct NarrowForm {
  Words result = 0;    // known of the result; 0: they do not serve
  Words need[4] = {};  // of the sources, in the order of their fields; 0: their low halves will do
};

// Whether any micro-op of the row has a narrow form.
constexpr bool may_run_narrow(Op op) {
  return shape_info(op_info(op).shape).pure &&
         (op_info(op).traits &
          (traits::kNarrow | traits::kNarrowSigned | traits::kNarrowIfFits)) != 0;
}
// Whether that depends on what is known of the sources.
constexpr bool asks_sources(Op op) {
  return may_run_narrow(op) && has_trait(op, traits::kNarrowIfFits);
}

// Whether that depends on its other fields.
constexpr bool asks_fields(Op op) {
  return asks_sources(op) || op == Op::bfi32 || op == Op::bfxil32 || op == Op::lsri32 ||
         op == Op::sbf64;
}

// Words compare like the values that they stand for, if both are extended in the same way, but for
// the sign of those with zeros above.
constexpr Words comparable_as(Words x, Words y, bool is_signed) {
  if (x & y & kSignAbove) return kSignAbove;
  return is_signed ? Words{0} : static_cast<Words>(x & y & kZeroAbove);
}

[[gnu::always_inline]] constexpr NarrowForm narrow_selection(const Uop& u, const Words* known) {
  const CompareKind kind = CompareKind::unpack(u.aux);
  const bool immediate = u.op == Op::sel_cmpi;
  NarrowForm form;
  if (kind.narrow_result) {
    form.result = kZeroAbove;
  } else {
    form.result = form.need[0] = form.need[1] = known[0] & known[1];
  }
  if (kind.is_32bit) return form;
  form.need[2] = comparable_as(known[2], immediate ? words_of(u.imm) : known[3],
                               kind.relation == CompareRelation::kLessSigned);
  if (form.need[2] == 0) return {};
  if (!immediate) form.need[3] = form.need[2];
  return form;
}

// `known` has what is known of each source, in the order of their fields.
[[gnu::always_inline]] constexpr NarrowForm narrow_form(const Uop& u, const Words* known) {
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  const auto always = [](Words result) { return NarrowForm{.result = result}; };
  const auto if_first = [&](Words need, Words result) {
    NarrowForm form;
    if ((known[0] & need) != need) return form;
    form.result = result;
    form.need[0] = need;
    return form;
  };
  switch (u.op) {
    case Op::bfi32:
    case Op::bfxil32: return always(u.aux < 32 ? kZeroAbove : Words{0});
    case Op::lsri32: return always(u.imm != 0 ? kBothAbove : kZeroAbove);
    case Op::cset: return always(kBothAbove);
    case Op::sbf64: return always(u.imm >= 32 && u.aux >= 32 ? kSignAbove : Words{0});
    case Op::sel_cmp:
    case Op::sel_cmpi: return narrow_selection(u, known);
    // Where a mask cuts off the upper half, it does not matter what is there.
    case Op::andi64:
      if (u.imm >> 32 == 0) return always(words_of(u.imm));
      break;
    case Op::ubfiz:
      return always(u.aux < 32 && u.imm >> 32 == 0 ? words_of(u.imm) : Words{0});
    case Op::ubfx:
      if (u.aux >= 32) return {};
      if (u.imm >> (32 - u.aux) == 0) return always(words_of(u.imm));
      return if_first(kZeroAbove, u.aux != 0 ? kBothAbove : kZeroAbove);
    case Op::lsri64:
      if (u.imm >= 32) return {};
      return if_first(kZeroAbove, u.imm != 0 ? kBothAbove : kZeroAbove);
    case Op::asri64: return u.imm < 32 ? if_first(kSignAbove, kSignAbove) : NarrowForm{};
    case Op::and64:
      for (int k = 0; k < 2; ++k) {
        if (!(known[k] & kZeroAbove)) continue;
        NarrowForm form{.result = static_cast<Words>(known[k] & kBothAbove)};
        form.need[k] = form.result;
        return form;
      }
      break;
    case Op::bic64:
      if (known[0] & kZeroAbove) return if_first(known[0], known[0]);
      break;
    default: break;
  }
  if (has_trait(u.op, traits::kNarrow)) return always(kZeroAbove);
  if (has_trait(u.op, traits::kNarrowSigned)) return always(kSignAbove);
  if (!has_trait(u.op, traits::kNarrowIfFits)) return {};
  // Bit by bit: the upper halves become what those of the sources are.
  Words common = op_info(u.op).shape == Shape::kDAI ? words_of(u.imm) : kBothAbove;
  int count = 0;
  for (const OperandUse& use : {info.a, info.b, info.c})
    if (use.reads) common &= known[count++];
  NarrowForm form{.result = common};
  for (int k = 0; k < count; ++k) form.need[k] = common;
  return form;
}

// Branches that look at no more than the low 32 bits.
constexpr bool is_narrow_branch(Op op) {
  return shape_info(op_info(op).shape).ends_block && has_trait(op, traits::kNarrow);
}
// What must be known of the sources of another one for 32-bit lanes to serve; 0: they do not.
constexpr Words narrow_branch_need(const Uop& u, const Words* known) {
  const Comparison k = comparison_of(u.op);
  if (k.relation == Relation::kNone) return 0;
  const auto imm = static_cast<uint64_t>(int64_t{static_cast<int16_t>(u.imm16())});
  return comparable_as(known[0], k.immediate ? words_of(imm) : known[1],
                       k.relation == Relation::kLess && k.is_signed);
}

}  // namespace gpusim::simd
