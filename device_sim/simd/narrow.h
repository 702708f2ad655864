// Which micro-ops may run on 32-bit lanes. A slot whose values all fit 32 bits is kept in a row of
// half the size: half the loads and stores, which is what an interpreter on SIMD lanes waits for.
#pragma once
#include "device_sim/uir/compare.h"
#include "device_sim/uir/uop.h"

namespace gpusim::simd {

enum class Narrow : uint8_t {
  kNever,
  kAlways,       // needs only the low 32 bits of its sources; the result is zero-extended
  kIfZeroAbove,  // the result fits 32 bits if the sources do (and, where it has one, the immediate)
};

constexpr Narrow narrow_form(Op op) {
  if (shape_info(op_info(op).shape).ends_block) return Narrow::kNever;
  if (has_trait(op, traits::kNarrow)) return Narrow::kAlways;
  return has_trait(op, traits::kNarrowIfFits) ? Narrow::kIfZeroAbove : Narrow::kNever;
}

// Whether the micro-op's own fields allow the narrow form.
template <Op op>
constexpr bool narrow_fields(const Uop& u) {
  switch (op) {
    case Op::ori64:
    case Op::xori64:
    case Op::ubfiz: return u.imm >> 32 == 0;
    case Op::ubfx: return u.aux < 32;
    case Op::bfi32:
    case Op::bfxil32: return u.aux < 32;
    case Op::lsri64: return u.imm < 32;
    // Values that fit 32 bits compare as such, but for their sign.
    case Op::sel_cmp:
    case Op::sel_cmpi: {
      const CompareKind kind = CompareKind::unpack(u.aux);
      return kind.is_32bit || (kind.relation != CompareRelation::kLessSigned &&
                               (op == Op::sel_cmp || u.imm >> 32 == 0));
    }
    default: return true;
  }
}

// Whether this one needs no more than the low 32 bits of its sources, whatever its form.
template <Op op>
constexpr bool narrow_always(const Uop& u) {
  if constexpr (op != Op::sel_cmp && op != Op::sel_cmpi) return false;
  const CompareKind kind = CompareKind::unpack(u.aux);
  return kind.is_32bit && kind.narrow_result;
}

// Branches that look at no more than the low 32 bits.
constexpr bool narrow_branch(Op op) {
  return shape_info(op_info(op).shape).ends_block && has_trait(op, traits::kNarrow);
}

}  // namespace gpusim::simd
