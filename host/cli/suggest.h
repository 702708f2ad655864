// What the user may have meant by an option or a command that there is not.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace gpusim::host {

// After a failed parse: " (did you mean --cores?)", or nothing.
std::string suggest(const CLI::App& app);
// " (usage: gpusim power compare [OPTIONS] TRACE; gpusim power compare --help tells more)" of the
// command that was being understood when it failed.
std::string usage(const CLI::App& app);

}  // namespace gpusim::host
