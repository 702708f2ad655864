// Random operands that a micro-op may have: immediates in the ranges that uops.def and helpers.def
// state, whatever the guest ISA.
#pragma once
#include "device_sim/uir/uop.h"
#include "tests/differential/backends/rng.h"

namespace gpusim::difftest {

// Integers near the places where carries, signs and widths change.
uint64_t interesting_integer(Rng& rng);
// Bit patterns of floats: one double, one float, two floats, or half-precision elements.
uint64_t interesting_float(Rng& rng);

// A row that computes a value and has one of the traits.
Op random_value_op(Traits any, Rng& rng);
// e, aux and imm of a micro-op that computes a value. Floating-point rows take their state slot
// from `fp_state`.
void random_fields(Uop& u, Slot fp_state, Rng& rng);

}  // namespace gpusim::difftest
