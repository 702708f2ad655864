// Structured programs of warps and CTAs: conditions and loops that part lanes, in which the lanes
// that are left shuffle, vote and exchange words; barriers; threads that end early.
#pragma once
#include "tests/differential/backends/random_case.h"

namespace gpusim::difftest {

struct WarpCase {
  Case c;
  // Sums of floats and the like depend on the order of a warp's lanes: no run may hold some apart.
  bool order_matters = false;
};
WarpCase random_warps(uint64_t seed);

}  // namespace gpusim::difftest
