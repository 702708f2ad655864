// Whole files. All failures are Errors that name the file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gpusim {

// What is longer than `most` bytes is refused, also from a pipe, which does not say how long it is.
std::string read_text(const std::string& path, uint64_t most = uint64_t{1} << 30);
std::vector<uint8_t> read_file(const std::string& path, uint64_t most = uint64_t{1} << 30);
// As read_text(). `expected` says in the error what the file should be.
std::string read_text_of(const std::string& path, const std::string& expected);
// Of a file that is not there: " (did you mean NAME?)" with a similar one of its folder, or "".
std::string nearest_file(const std::string& path);

}  // namespace gpusim
