// Code of real programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpusim {

/// Adds the bytes of all executable sections of an ELF file for that machine (EM_...), or of all
/// members of an archive of them. Throws std::runtime_error when the file holds none.
void append_code(const std::string& path, uint16_t machine, std::vector<uint8_t>& bytes);

}  // namespace gpusim
