// Parts of what places took, where only a sum is known.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "host/run/profile.h"

namespace gpusim::host {

// `use` in as many parts as there are weights, which add up to it exactly, class by class. A part
// has no more instructions than its weight if `use` has no more than all weights together.
std::vector<PlaceUse> split_use(const PlaceUse& use, std::span<const uint64_t> weights);

}  // namespace gpusim::host
