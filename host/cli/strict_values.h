// What no option takes, whatever it is for: an empty value, a number that is none.
#pragma once
#include <CLI/CLI.hpp>

namespace gpusim::host {

// For options whose value is a list with commas between: no element is empty.
CLI::Validator list_value();

// For all options of all commands, by the type of what they set. CLI11 itself takes -1 and 2^64 for
// unsigned numbers, "nan" for any number, and 010 for 8.
void check_values(CLI::App& app);

}  // namespace gpusim::host
