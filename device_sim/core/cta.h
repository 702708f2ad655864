// Cores of modules with warps (uir/module.h) are the threads of CTAs. A machine has places for some
// CTAs, 1 << cta_shift cores each: thread t of the CTA in place p is core (p << cta_shift) + t, and
// cores behind a CTA's last thread never start. Warps are 32 neighbouring cores.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "device_sim/uir/warp.h"

namespace gpusim {

// log2 of the cores of a place for CTAs of so many threads.
constexpr uint32_t cta_shift_of(uint32_t threads) {
  return std::max(5u, static_cast<uint32_t>(std::bit_width(threads - 1)));
}
static_assert(1u << cta_shift_of(1) == kWarpLanes && cta_shift_of(32) == 5 &&
              cta_shift_of(33) == 6 && 1u << cta_shift_of(kMostCtaThreads) == kMostCtaThreads);

}  // namespace gpusim
