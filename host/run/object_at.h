// What lies at an address of a program, for messages.
#pragma once
#include <cstdint>
#include <string>

#include "device_sim/core/backend.h"
#include "device_sim/uir/module.h"

namespace gpusim::host {

// "the stack of core 3" where cores share memory and have a stack each, or symbolize() of the
// address.
std::string object_at(const Module& module, const MachineConfig& config, uint64_t address);

}  // namespace gpusim::host
