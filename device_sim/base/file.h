// Whole files. All failures are Errors that name the file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gpusim {

// What is longer than `most` bytes is refused, also from a pipe, which does not say how long it is.
std::string read_text(const std::string& path, uint64_t most = uint64_t{1} << 30);
std::vector<uint8_t> read_file(const std::string& path, uint64_t most = uint64_t{1} << 30);

}  // namespace gpusim
