#include "host/cli/commands.h"

namespace gpusim::host {

void add_other_commands(CLI::App& app, const std::vector<std::string>& guest_args, Action& action) {
  add_energy_command(app, action);
  add_power_command(app, guest_args, action);
  add_sweep_command(app, guest_args, action);
  add_merge_command(app, action);
  add_daemon_command(app, action);
  add_doctor_command(app, action);
#ifdef GPUSIM_HAVE_PTX
  add_cuda_command(app, guest_args, action);
#endif
}

}  // namespace gpusim::host
