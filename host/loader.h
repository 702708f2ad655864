// Puts a module's image into a machine's memory.
#pragma once
#include "device_sim/core/backend.h"
#include "device_sim/uir/module.h"
#include "host/memory_plan.h"

namespace gpusim::host {

// Contents and permissions of all segments and stacks. The backend is configured with plan.config.
void load_image(Backend& backend, const Module& module, const MemoryPlan& plan);

// Permissions of every core's stack, in the shared model; part of load_image.
void map_stacks(Backend& backend, const MemoryPlan& plan);

}  // namespace gpusim::host
