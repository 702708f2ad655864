// `gpusim power ...`: the group of commands that measure power.
#include "host/cli/power_commands.h"

namespace gpusim::host {

void add_source_options(CLI::App& command, SourceArguments& arguments) {
  command.add_option("--source", arguments.source,
                     "nvml:N[:instant|:average], rapl[:ZONE], hwmon:NAME, csv:FILE, sim:FILE.json "
                     "(nvml)");
  command.add_option("--sysfs", arguments.options.sysfs_root,
                     "Folder that rapl and hwmon are looked for in (/sys)");
  command.add_option("--nvml-library", arguments.options.nvml_library,
                     "Library of nvml (libnvidia-ml.so.1)");
}

void add_power_command(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  CLI::App* power = app.add_subcommand("power", "Measure power: record, correct, profile");
  power->require_subcommand(1);
  add_power_record(*power, command, action);
  add_power_profile(*power, command, action);
  add_power_correct(*power, action);
  add_power_calibrate(*power, action);
  add_power_sensor(*power, command, action);
  add_power_microbench(*power, action);
  add_power_attach(*power, command, action);
  add_power_compare(*power, action);
}

}  // namespace gpusim::host
