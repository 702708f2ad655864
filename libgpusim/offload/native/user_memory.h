// SPDX-License-Identifier: MIT
// What this process may do with its own memory.
#pragma once
#include <cstdint>

namespace gpusim::offload {

/// enum gpusim_rights that hold for all pages of the range; 0 if there is a hole.
uint8_t user_memory_rights(uint64_t address, uint64_t size_bytes);

}  // namespace gpusim::offload
