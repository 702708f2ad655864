// GNU objdump as a judge of single RISC-V instructions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusim::riscv {

/// An instruction of 2 or 4 bytes, in its low bits.
struct Encoding {
  uint32_t word;
  unsigned bytes;
};

/// "addi a0,a0,1" per instruction, "c.addi a0,1" without aliases; empty where objdump knows none.
/// Targets of branches and jumps become offsets: "beqz a0,.+8". Throws std::runtime_error.
std::vector<std::string> objdump(std::span<const Encoding> code, bool aliases, int xlen);

}  // namespace gpusim::riscv
