// One program that executes nearly all micro-ops that compute values, and then does what stops
// cores.
#pragma once
#include "device_sim/uir/module.h"

namespace gpusim::self_test {

// What it finds in registers: kNumber, the core's number; kOwn, the address of a page that only
// this core uses; kCommon, that of words that all may add to; kFaulty, that of a page without
// rights.
enum ValueSlots : Slot {
  kNumber, kOwn, kCommon, kFaulty, kX, kY, kZ, kResult, kSum, kFpState, kTurns, kAddress, kScratch,
  kValueSlots
};

// By their number cores end with a breakpoint, a load that faults, a store that faults, a system
// call and then a breakpoint, or a jump to where there is no code.
Module value_program();

}  // namespace gpusim::self_test
