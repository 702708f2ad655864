// Instructions as text, by our own decoder, in the spelling of `objdump -M no-aliases`.
#pragma once

#include <cstdint>
#include <string>

#include "translator/riscv/decode.h"

namespace gpusim::riscv {

/// The mnemonic with what its fields append: "addiw", "amoadd.d.aq", "fcvt.w.s".
std::string mnemonic(const Row& row, uint32_t word);

/// "addiw a0,a1,-1"; targets of jumps and branches as offsets from the instruction: "beq
/// a0,a1,.+8". A 16-bit instruction as the 32-bit one that it is short for. Empty if unallocated.
std::string instruction_text(const Insn& insn);

/// ABI names: "a0", "ft3".
const char* x_name(uint32_t r);
const char* f_name(uint32_t r);

}  // namespace gpusim::riscv
