// Operands of a disassembler's text.
#pragma once

#include <string>
#include <vector>

namespace gpusim::a64 {

/// Numbers of the registers in the order of the text; of a list in braces only the first.
std::vector<unsigned> registers_in(const std::string& operands);

}  // namespace gpusim::a64
