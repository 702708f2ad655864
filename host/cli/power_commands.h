// The subcommands of `gpusim power`. docs/power.md.
#pragma once
#include "energy/power/source.h"
#include "host/cli/commands.h"

namespace gpusim::host {

// --source with --sysfs and --nvml-library, for commands that open a source.
struct SourceArguments {
  std::string source = "nvml";
  power::SourceOptions options;

  std::unique_ptr<power::PowerSource> open() const { return power::open_source(source, options); }
};
void add_source_options(CLI::App& command, SourceArguments& arguments);

// Each is declared here, defined in power_NAME.cpp and called by add_power_command()
// (power_command.cpp). `command`: what stood after `--`.
void add_power_calibrate(CLI::App& power, Action& action);
void add_power_correct(CLI::App& power, Action& action);
void add_power_profile(CLI::App& power, const std::vector<std::string>& command, Action& action);
void add_power_sensor(CLI::App& power, const std::vector<std::string>& command, Action& action);
void add_power_record(CLI::App& power, const std::vector<std::string>& command, Action& action);

void add_power_attach(CLI::App& power, const std::vector<std::string>& command, Action& action);
void add_power_compare(CLI::App& power, Action& action);
void add_power_microbench(CLI::App& power, Action& action);

}  // namespace gpusim::host
