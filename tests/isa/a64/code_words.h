// Instruction words of real programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpusim::a64 {

/// Adds the words of all executable sections of an AArch64 ELF file, or of all members of an
/// archive of them. Throws std::runtime_error when the file holds none.
void append_code_words(const std::string& path, std::vector<uint32_t>& words);

}  // namespace gpusim::a64
