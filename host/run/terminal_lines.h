// Lines for the terminal that standard error may be.
#pragma once
#include <cstddef>
#include <string>

namespace gpusim::host {

// Columns of the terminal that standard error is; 0: it is none.
size_t error_columns();

// Broken between words so that no line is longer than `columns`; what follows the first is
// indented. 0: not broken.
std::string wrapped(const std::string& text, size_t columns);

}  // namespace gpusim::host
