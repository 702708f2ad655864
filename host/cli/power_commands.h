// The subcommands of `gpusim power`. docs/power.md.
#pragma once
#include "host/cli/commands.h"

namespace gpusim::host {

// Each is declared here, defined in power_NAME.cpp and called by add_power_command()
// (power_command.cpp). `command`: what stood after `--`.
void add_power_calibrate(CLI::App& power, Action& action);
void add_power_correct(CLI::App& power, Action& action);
void add_power_profile(CLI::App& power, const std::vector<std::string>& command, Action& action);
void add_power_record(CLI::App& power, const std::vector<std::string>& command, Action& action);

void add_power_microbench(CLI::App& power, Action& action);

}  // namespace gpusim::host
