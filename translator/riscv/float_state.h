// fcsr and the state word of floating-point micro-ops (unprivileged manual, 11.2).
#pragma once
#include <cstdint>

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::riscv {

/// How RISC-V computes, whatever fcsr says (11.2, 11.3 and 11.7).
inline constexpr uint64_t kFpPolicy =
    softfloat::kFpCanonicalNan | softfloat::kFpTinyAfterRounding | softfloat::kFpNanToLargest;

// The state word holds frm as Arm's RMode with the bit for ties away below it, and fflags in the
// reverse order from bit 0.
inline constexpr int kFpModeShift = 53;
static_assert(softfloat::kFpTiesAway == uint64_t{1} << kFpModeShift);
static_assert(softfloat::kFpcrRmodeShift == kFpModeShift + 1);

/// The three bits there for each frm, from bit 3 * frm on. Reserved ones round to nearest even.
constexpr uint64_t fp_mode_table() {
  using softfloat::Rounding;
  const auto directed = [](Rounding r) { return uint64_t{static_cast<unsigned>(r)} << 1; };
  return directed(Rounding::kTieEven) | directed(Rounding::kZero) << 3 |
         directed(Rounding::kNegInf) << 6 | directed(Rounding::kPosInf) << 9 | uint64_t{1} << 12;
}
/// In place.
constexpr uint64_t fp_mode_bits(uint32_t frm) {
  return (fp_mode_table() >> (3 * frm) & 7) << kFpModeShift;
}

constexpr uint32_t reverse_flags(uint32_t flags) {
  return (flags & 1) << 4 | (flags & 2) << 2 | (flags & 4) | (flags & 8) >> 2 | (flags & 16) >> 4;
}
constexpr uint32_t fflags_of(uint64_t fp_state) {
  return reverse_flags(static_cast<uint32_t>(fp_state));
}
/// frm is not kept there as it was written: kFrm has it.
constexpr uint64_t fp_state_of(uint32_t fcsr) {
  return kFpPolicy | fp_mode_bits(fcsr >> 5 & 7) | reverse_flags(fcsr);
}

}  // namespace gpusim::riscv
