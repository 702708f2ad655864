#pragma once
#include <string>

namespace gpusim::energy {

// The whole file. Throws energy::Error that names it.
std::string read_text_file(const std::string& path);

}  // namespace gpusim::energy
