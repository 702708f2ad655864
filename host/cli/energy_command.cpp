// `gpusim energy ...`: the group of commands about energy and power.
#include "host/cli/commands.h"

namespace gpusim::host {

void add_energy_command(CLI::App& app, Action& action) {
  CLI::App* energy = app.add_subcommand("energy", "Energy and power models");
  energy->require_subcommand(1);
  add_energy_model_commands(*energy, action);
  add_accelwattch_commands(*energy, action);
}

}  // namespace gpusim::host
