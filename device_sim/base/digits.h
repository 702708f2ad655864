// Numbers as people read them.
#pragma once
#include <cstdint>
#include <string>

namespace gpusim {

std::string grouped(uint64_t value);  // "1,234,567"

}  // namespace gpusim
