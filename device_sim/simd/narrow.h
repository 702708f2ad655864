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
  switch (op) {
    case Op::mov32: case Op::add32: case Op::addi32: case Op::sub32: case Op::add_lsl32:
    case Op::sub_lsl32: case Op::and32: case Op::or32: case Op::ori32: case Op::xor32:
    case Op::xori32: case Op::lsl32: case Op::lsr32: case Op::asr32: case Op::lsli32:
    case Op::lsri32: case Op::asri32: case Op::mul32: case Op::madd32: case Op::msub32:
    case Op::bfi32: case Op::bfxil32: case Op::fl_add32: case Op::fl_sub32: case Op::fl_nz32:
    case Op::cset: case Op::csel32: case Op::csinc32: case Op::csinv32: case Op::csneg32:
      return Narrow::kAlways;
    case Op::mov: case Op::and64: case Op::andi64: case Op::or64: case Op::ori64: case Op::xor64:
    case Op::xori64: case Op::bic64: case Op::ubfx: case Op::ubfiz: case Op::lsri64:
    case Op::csel64: case Op::vbsl: case Op::sel_cmp: case Op::sel_cmpi:
      return Narrow::kIfZeroAbove;
    default: return Narrow::kNever;
  }
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
  switch (op) {
    case Op::br_eq32: case Op::br_ne32: case Op::br_lt32: case Op::br_ge32: case Op::br_ltu32:
    case Op::br_geu32: case Op::bri_eq32: case Op::bri_ne32: case Op::bri_lt32:
    case Op::bri_ge32: case Op::bri_ltu32: case Op::bri_geu32: case Op::br_cond:
      return true;
    default: return false;
  }
}

}  // namespace gpusim::simd
