// Lanes of a warp or a group, as bits of a mask.
#pragma once
#include <bit>
#include <cstdint>

namespace gpusim {

// Calls f(lane) for those of the mask, the lowest first.
template <class F>
inline void for_each_lane(uint64_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<uint32_t>(std::countr_zero(lanes)));
}

}  // namespace gpusim
