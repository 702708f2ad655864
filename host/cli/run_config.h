// `gpusim run --config FILE`: options of a run from a file.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gpusim::host {

// Gives the options of `command` that the command line did not give the values that the file has:
// TOML or JSON, keys as options are called, without the dashes. `program` is PROGRAM; `args` are
// the guest's arguments, which are returned; `guest_args`: those of the command line go before
// them. Throws Error with file and line.
std::vector<std::string> apply_config(CLI::App& command, const std::string& path,
                                      const std::vector<std::string>& guest_args);

}  // namespace gpusim::host
