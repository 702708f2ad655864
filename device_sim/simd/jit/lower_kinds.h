// Which micro-ops generated code can compute in which way.
#pragma once
#include "device_sim/simd/narrow.h"
#include "device_sim/uir/fp_aux.h"

namespace gpusim::simd {

// Single precision needs 32 bits only, although the interpreter has it in 64-bit words.
constexpr bool is_single_precision(const Uop& u) {
  return has_trait(u.op, traits::kSingle) || ((u.op == Op::fcmp || u.op == Op::fminmax) &&
                                              static_cast<FpFormat>(u.aux & 3) == FpFormat::kF32);
}
constexpr bool may_be_narrow(Op op) {
  return may_run_narrow(op) || shape_info(op_info(op).shape).ends_block ||
         is_single_precision(Uop{.op = op, .aux = static_cast<uint8_t>(FpFormat::kF32)});
}

// Values that need no scalar function (JitDomain::map).
constexpr bool is_straight(Op op) {
  return shape_info(op_info(op).shape).pure && !has_trait(op, traits::kByLane);
}

// Affine rules (simd/affine.h) that are a few scalar instructions.
constexpr bool is_affine_inline(Op op) { return has_trait(op, traits::kAffineInline); }

}  // namespace gpusim::simd
