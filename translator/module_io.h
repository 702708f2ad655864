// The module file (.gsm): a translated program with the guest image it came from.
//
// Layout (little-endian): magic "GPUSIMM\n", u32 version, u32 CRC-32 of the payload, u64 payload
// size, payload. A reader trusts nothing: sizes are checked against what is left, and the module by
// module_check.h.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/base/error.h"
#include "device_sim/uir/module.h"

namespace gpusim {

/// True if the bytes begin as a module file does, whatever its version.
bool is_module(std::span<const uint8_t> bytes);

/// What a module file holds.
std::vector<uint8_t> module_bytes(const Module& module);

/// Error when damaged, or written by another version. `name` stands in messages.
Module read_module(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace gpusim
