// Where a core is between two slices, as a guest address.
#pragma once
#include <cstdint>

#include "device_sim/core/backend.h"
#include "device_sim/uir/module.h"

namespace gpusim::host {

// Of a core that the backend runs. Between the end of a block and the next one lie links, and
// values that only one way out of a block needs: the core is taken past them.
uint64_t settled_pc(Backend& backend, const Module& module, uint32_t core);

}  // namespace gpusim::host
