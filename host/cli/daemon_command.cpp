#include <memory>

#include "device_sim/base/error.h"
#include "host/cli/commands.h"
#include "qemu_bridge/daemon/daemon.h"

namespace gpusim::host {
namespace {

struct RawDaemonOptions {
  daemon::DaemonOptions daemon;
  int qemu_fd = -1;
  std::string memory_limit, compiled_regions;
  bool sandbox = false, no_sandbox = false;
};

daemon::DaemonOptions understand(const RawDaemonOptions& raw) {
  daemon::DaemonOptions options = raw.daemon;
  if (raw.qemu_fd >= 0) options.qemu_fd = raw.qemu_fd;
  if (!raw.memory_limit.empty())
    options.memory_limit_bytes = parse_size("--memory-limit", raw.memory_limit);
  if (!raw.compiled_regions.empty())
    options.compiled_regions = compiled_regions_of(raw.compiled_regions).value();
  if (raw.sandbox && raw.no_sandbox) throw Error("--sandbox and --no-sandbox exclude each other");
  if (raw.sandbox || raw.no_sandbox) options.sandbox = raw.sandbox;
  return options;
}

}  // namespace

void add_daemon_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("daemon", "Serve a guest of QEMU with simulated cores, until it is gone");
  auto raw = std::make_shared<RawDaemonOptions>();
  daemon::DaemonOptions& options = raw->daemon;
  command
      ->add_option("--qemu-fd", raw->qemu_fd,
                   "The socket that a patched QEMU gave; QEMU itself adds this option")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--listen", options.listen,
                      "Make a Unix socket here for the virtio-serial port of a stock QEMU");
  repeatable(command->add_option(
      "--ram", options.ram,
      "With --listen: guest RAM as FILE[@GPA][:SIZE][+OFFSET] (GPA 0x40000000, the "
      "whole file); repeatable"));
  command->add_option(
      "--qmp", options.qmp,
      "With --listen: the Unix socket of QEMU's monitor; kernels stop with the machine");
  command->add_option("--backend", options.backend, "auto, or a name that `gpusim info` lists");
  command
      ->add_option("--guest-memory", options.guest_memory,
                   "How a GPU reaches guest RAM: auto, registered, pageable or copied")
      ->check(CLI::IsMember({"auto", "registered", "pageable", "copied"}));
  command
      ->add_option("--compiled-regions", raw->compiled_regions,
                   "Whether hot code is compiled for the GPU: off, on (beside kernels) or wait")
      ->check(CLI::IsMember({"off", "on", "wait"}));
  command->add_option("--threads", options.threads, "Host threads (all)")
      ->check(CLI::Range(1u, 4096u));
  command->add_option("--max-cores", options.most_cores, "Of one kernel (1048576)")
      ->check(CLI::Range(1u, kMostCores));
  command->add_option("--max-contexts", options.most_contexts, "Open at a time (64)")
      ->check(CLI::Range(1u, 1024u));
  command->add_option("--memory-limit", raw->memory_limit,
                      "Memory that the daemon may allocate, guest RAM not counted");
  command->add_option("--time-limit", options.time_limit_s, "Seconds that any kernel may run")
      ->check(CLI::Range(1e-3, 1e9));
  command
      ->add_option("--spin-us", options.spin_us,
                   "Microseconds of looking for work before sleeping (200)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--sandbox", raw->sandbox, "Filter system calls, or fail (seccomp)");
  command->add_flag("--no-sandbox", raw->no_sandbox,
                    "Don't; else it is on with --qemu-fd where the machine has it");
  command->add_flag("--verbose", options.verbose, "Each command on standard error");
  command->add_option("--log", options.log_path, "Each command to this file, appended");
  command->callback(
      [raw, &action] { action = [raw] { return daemon::run_daemon(understand(*raw)); }; });
}

}  // namespace gpusim::host
