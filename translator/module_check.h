// What backends and host take for granted of a module, checked for those that come from a file.
//
// A module that passes runs on every backend without leaving guest memory or the machine's tables,
// and a core of it looks at its budget again after a bounded number of micro-ops: control goes
// forward within a block, each block counts at least one instruction, and every cycle passes the
// end of a block.
#pragma once
#include <string>

#include "device_sim/uir/module.h"

namespace gpusim {

/// Error if the module is damaged. `name` stands in the message.
void check_module(const Module& module, const std::string& name);

}  // namespace gpusim
