#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "device_sim/core/backend.h"
#include "host/cli/commands.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

int print_info() {
  fmt::print("gpusim {}\n\nISAs:\n", GPUSIM_VERSION);
  for (const GuestIsa& isa : all_isas()) {
    fmt::print("  {}; CPUs for --cpu, default first:\n", isa.name);
    for (const GuestCpu& cpu : isa.cpus) fmt::print("    {:<12} {}\n", cpu.name, cpu.note);
  }
  fmt::print("\nBackends, best first:\n");
  for (const BackendInfo& backend : all_backends()) {
    std::string why_not;
    if (backend.available(&why_not)) {
      fmt::print("  {:<8} {}\n", backend.name, backend.device());
    } else {
      fmt::print("  {:<8} not available: {}\n", backend.name, why_not);
    }
  }
  fmt::print("\nThis machine:\n  {}, {} hardware threads\n", processor_name(),
             std::thread::hardware_concurrency());
  return 0;
}

}  // namespace

void add_info_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("info", "List ISAs, backends and the devices of this machine");
  command->callback([&action] { action = print_info; });
}

}  // namespace gpusim::host
