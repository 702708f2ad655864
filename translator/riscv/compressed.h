// The C extension: 16-bit instructions as the 32-bit ones that they are short for.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpusim::riscv {

/// 0: unallocated. `xlen`: 32 or 64.
uint32_t expand(uint16_t half, int xlen);

/// The row of rows/compressed.def, "C_ADDI"; empty if unallocated.
std::string_view compressed_row(uint16_t half, int xlen);

}  // namespace gpusim::riscv
