// Which instructions were spent on waiting: looks in vain at what another core shall change.
//
// A look is a short way through the program from a YIELD or a WFE back to it: load the word, compare,
// give way again. Each execution of that YIELD or WFE ended one look in vain, so the executions of the
// blocks of the look that were in vain are as many. What a look calls does not count.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim::host {

// The longest look, in instructions: whoever does more between two turns works.
inline constexpr uint32_t kLongestLook = 64;

// Per block: executions that belong to looks in vain; never more than `block_counts`.
std::vector<uint64_t> executions_in_vain(const Module& module,
                                         std::span<const uint64_t> block_counts);

}  // namespace gpusim::host
