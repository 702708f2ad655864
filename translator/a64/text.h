// Instructions as text, by our own decoder, in the spelling of `objdump -M no-aliases`. For
// listings, where Capstone does not know an instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translator/a64/decode.h"

namespace gpusim::a64 {

/// The row's base mnemonic, and what its fields (size, ordering, upper half ...) append to it.
std::string mnemonic(const Row& row, uint32_t word);

/// Numbers of the registers in the order in which an assembler text names them; of a list in
/// braces only the first. None where the text does not follow that order.
std::optional<std::vector<unsigned>> register_numbers(const Row& row, uint32_t word);

/// "ldaddal w1, w2, [x3]". Of floating-point and vector instructions the mnemonic and the registers
/// without their arrangements: "sdot v1, v4, v20". Empty if unallocated.
std::string instruction_text(uint32_t word);

}  // namespace gpusim::a64
