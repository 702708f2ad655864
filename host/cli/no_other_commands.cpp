#include "host/cli/commands.h"

namespace gpusim::host {

void add_other_commands(CLI::App& app, const std::vector<std::string>&, Action&) {
  app.description(app.get_description() +
                  "\nWithout the commands energy, power, sweep, daemon and doctor, which `gpusim` "
                  "has.");
}

}  // namespace gpusim::host
