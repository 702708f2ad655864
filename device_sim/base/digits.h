// Numbers as people read and write them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gpusim {

std::string grouped(uint64_t value);  // "1,234,567"
// At least one decimal digit, and nothing else.
bool is_number(std::string_view text);

}  // namespace gpusim
