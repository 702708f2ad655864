#include <memory>
#include <nlohmann/json.hpp>

#include "host/cli/commands.h"
#include "host/console.h"
#include "host/doctor/doctor.h"

namespace gpusim::host {

void add_doctor_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "doctor", "What this machine has for gpusim, and what to do where it lacks something");
  struct Options {
    doctor::Machine machine;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--root", options->machine.root,
                   "A folder that has the machine's /proc, /sys and /dev")
      ->group("");  // for tests
  command
      ->add_option("--nvml-library", options->machine.nvml_library, "The driver's library for NVML")
      ->group("");  // for tests
  command->callback([options, &action] {
    action = [options] {
      const std::vector<doctor::Check> checks = doctor::all_checks(options->machine);
      if (options->json)
        console::out("{}\n", doctor::json_of(checks).dump(
                                 2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
      else
        console::out("{}", doctor::text_of(checks));
      return doctor::can_run(checks) ? 0 : 1;
    };
  });
}

}  // namespace gpusim::host
