// What objdump should print for a word that our table gives to a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translator/a64/decode.h"

namespace gpusim::a64 {

/// The mnemonic of `objdump -M no-aliases`: the row's base mnemonic, and what its fields (size,
/// ordering, upper half ...) append to it.
std::string expected_mnemonic(const Row& row, uint32_t word);

/// Numbers of the registers in the order in which an assembler text names them; of a list in
/// braces only the first. None where the text does not follow that order.
std::optional<std::vector<unsigned>> expected_registers(const Row& row, uint32_t word);

/// The same, read from the operands of a disassembly.
std::vector<unsigned> registers_in(const std::string& operands);

}  // namespace gpusim::a64
