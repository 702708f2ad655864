// What `--help` says beyond options: examples and exit statuses. Manual page and completions are made
// from the same data (`gpusim --dump-help`, make_help_files.py).
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

namespace gpusim::host {

// To be called when all commands have been added.
void add_help_texts(CLI::App& app);

// All commands: names, descriptions, options with their values, examples, exit statuses.
nlohmann::ordered_json describe_program(const CLI::App& app);

}  // namespace gpusim::host
