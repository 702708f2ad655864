// Which micro-ops generated code can compute in which way.
#pragma once
#include "device_sim/simd/narrow.h"
#include "device_sim/uir/fp_aux.h"

namespace gpusim::simd {

// Single precision needs 32 bits only, although the interpreter has it in 64-bit words.
constexpr bool is_single_precision(const Uop& u) {
  switch (u.op) {
    case Op::fadd32: case Op::fsub32: case Op::fmul32: case Op::fdiv32: case Op::fma32:
    case Op::fsqrt32:
      return true;
    case Op::fcmp: return static_cast<FpFormat>(u.aux & 3) == FpFormat::kF32;
    default: return false;
  }
}
constexpr bool may_be_narrow(Op op) {
  return narrow_form(op) != Narrow::kNever || narrow_branch(op) ||
         is_single_precision(Uop{.op = op, .aux = static_cast<uint8_t>(FpFormat::kF32)});
}

// Values that need no scalar function (JitDomain::map).
constexpr bool is_straight(Op op) {
  switch (op) {
    case Op::clz64: case Op::clz32: case Op::cls64: case Op::cls32: case Op::smulh:
    case Op::umulh: case Op::udiv64: case Op::sdiv64:
    case Op::help1: case Op::help2: case Op::help3:
      return false;
    default: return shape_info(op_info(op).shape).pure;
  }
}

// Affine rules (simd/affine.h) that are a few scalar instructions.
constexpr bool is_affine_inline(Op op) {
  switch (op) {
    case Op::mov: case Op::mov32: case Op::add64: case Op::addi64: case Op::sub64:
    case Op::add_lsl64: case Op::sub_lsl64: case Op::lsli64: case Op::add32: case Op::addi32:
    case Op::sub32: case Op::add_lsl32: case Op::sub_lsl32: case Op::lsli32:
      return true;
    default: return false;
  }
}

}  // namespace gpusim::simd
