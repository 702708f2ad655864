// `gpusim self-test`: docs/gpu.md.
#include <fmt/format.h>

#include <memory>

#include "host/backend_choice.h"
#include "host/cli/commands.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/self_test.h"

namespace gpusim::host {
namespace {

struct SelfTestOptions {
  std::string devices = "all";
  unsigned timeout_seconds = kSelfTestSeconds;
  bool here = false;
};

int self_test(const SelfTestOptions& options) {
  const std::vector<uint32_t> devices = parse_devices(options.devices);
  if (options.here) return self_test_here(devices.front(), options.timeout_seconds);
  const std::vector<DeviceInfo> known = devices_of(backend_with_devices().name);
  bool all_passed = true;
  for (const uint32_t number : devices) {
    const SelfTest result = run_self_test(number, known[number], options.timeout_seconds);
    console::out("device {}: {}: {}\n", number, known[number].name,
                 result.passed ? fmt::format("passed in {:.1f} s", result.seconds)
                               : "failed: " + result.why_not);
    all_passed &= result.passed;
  }
  return all_passed ? 0 : 1;
}

}  // namespace

void add_self_test_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "self-test",
      "Run small programs on GPUs and compare; `--backend auto` takes only those that passed");
  auto options = std::make_shared<SelfTestOptions>();
  command
      ->add_option("--device,--devices", options->devices,
                   "GPUs: numbers as `gpusim info` lists them, with commas between, or all (all)")
      ->transform(list_value());
  command
      ->add_option("--timeout", options->timeout_seconds,
                   "Seconds after which a GPU has failed (60)")
      ->check(CLI::Range(1u, 3600u));
  command->add_flag("--here", options->here, "In this process")
      ->group("");  // made by the test itself
  command->callback([options, &action] { action = [options] { return self_test(*options); }; });
}

}  // namespace gpusim::host
