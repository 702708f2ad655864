// Loops in micro-ops whose values change their forms (one for all cores, affine, lanes) as rounds
// go by: what native code was specialised on holds for a while, then no longer.
#pragma once
#include "tests/differential/backends/random_case.h"

namespace gpusim::difftest {

struct LoopCase {
  Case c;
  // Results depend on the order of atomics: only runs with equal slices on one thread agree.
  bool order_matters = false;
};

LoopCase random_loop(uint64_t seed);

}  // namespace gpusim::difftest
