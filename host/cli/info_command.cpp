#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "host/chip/report.h"
#include "host/cli/commands.h"
#include "host/console.h"
#include "host/memory_plan.h"
#include "host/processor.h"
#include "host/self_test.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

std::string state_of(const DeviceInfo& device) {
  if (!device.why_not.empty()) return "not usable: " + device.why_not;
  const std::optional<SelfTest> test = known_self_test(device);
  if (!test) return "self-test not run yet";
  return test->passed ? "self-test passed" : "self-test failed: " + test->why_not;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

int print_json(const Json& json) {
  console::out("{}\n", text_of(json));
  return 0;
}

}  // namespace

std::string info_json() {
  Json json = {{"version", GPUSIM_VERSION}, {"isas", Json::array()}, {"backends", Json::array()}};
  for (const GuestIsa* isa : all_isas()) {
    Json cpus = Json::array();  // the default first
    for (const GuestCpu& cpu : isa->cpus) cpus.push_back({{"name", cpu.name}, {"note", cpu.note}});
    json["isas"].push_back({{"name", isa->name}, {"cpus", cpus}});
  }
  for (const BackendInfo& backend : all_backends()) {  // best first
    std::string why_not;
    const bool available = backend.available(&why_not);
    Json entry = {{"name", backend.name}, {"available", available}};
    entry[available ? "device" : "reason"] = available ? backend.device() : why_not;
    for (const DeviceInfo& device : devices_of(backend.name)) {
      entry["devices"].push_back({{"name", device.name},
                                  {"available", device.why_not.empty()},
                                  {"state", state_of(device)}});
    }
    json["backends"].push_back(entry);
  }
  json["processor"] = processor_name();
  json["hardware_threads"] = std::thread::hardware_concurrency();
  return text_of(json);
}

namespace {

int print_json_info() {
  console::out("{}\n", info_json());
  return 0;
}

int print_info() {
  console::out("gpusim {}\n\nISAs:\n", GPUSIM_VERSION);
  for (const GuestIsa* isa : all_isas()) {
    console::out("  {}; CPUs for --cpu, default first:\n", isa->name);
    for (const GuestCpu& cpu : isa->cpus) console::out("    {:<12} {}\n", cpu.name, cpu.note);
  }
  console::out("\nBackends, best first:\n");
  for (const BackendInfo& backend : all_backends()) {
    std::string why_not;
    if (backend.available(&why_not)) {
      console::out("  {:<8} {}\n", backend.name, backend.device());
    } else {
      console::out("  {:<8} not available: {}\n", backend.name, why_not);
    }
    const std::vector<DeviceInfo> devices = devices_of(backend.name);
    for (size_t i = 0; i < devices.size(); ++i)
      console::out("    device {}: {}; {}\n", i, devices[i].name, state_of(devices[i]));
  }
  console::out("\nThis machine:\n  {}, {} hardware threads\n", processor_name(),
               std::thread::hardware_concurrency());
  return 0;
}

struct ProgramInfoOptions {
  std::string program, memory = "shared", memory_size, stack_size;
  uint32_t cores = 1024;
  bool json = false, chips = false;
};

std::string size_text(uint64_t bytes) {
  if (bytes < 4096) return fmt::format("{} bytes", bytes);
  if (bytes < 16u << 20) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} MiB", bytes >> 20);
}

// What each simulated core takes.
int print_program_info(const ProgramInfoOptions& options) {
  const Module module = load_program(options.program, {});
  PlanRequest request{
      .model = options.memory == "private" ? MemoryModel::kPrivate : MemoryModel::kShared,
      .cores = options.cores};
  if (!options.memory_size.empty())
    request.memory_size_bytes = parse_size("--memory-size", options.memory_size);
  if (!options.stack_size.empty())
    request.stack_size_bytes = parse_size("--stack-size", options.stack_size);
  const MemoryPlan plan = plan_memory(module, request);
  const uint64_t context = module.slot_count * sizeof(uint64_t);
  if (options.json) {
    Json scheduling = Json::object();
    for (const BackendInfo& backend : all_backends())
      scheduling[backend.name] = backend.scheduling_bytes;
    Json json = {{"program", options.program},
                 {"isa", module.isa},
                 {"micro_ops", module.uops.size()},
                 {"blocks", module.blocks.size()},
                 {"cores", options.cores},
                 {"context_bytes", context},
                 {"context_slots", module.slot_count},
                 {"scheduling_bytes", scheduling},
                 {"stack_bytes", plan.stack_size_bytes}};
    if (request.model == MemoryModel::kPrivate)
      json["memory_bytes"] = uint64_t{1} << plan.config.window_shift;
    return print_json(json);
  }
  console::out("{}: {}, {} micro-ops in {} blocks\n\nEach of {} cores:\n", options.program,
               module.isa, module.uops.size(), module.blocks.size(), options.cores);
  console::out("  {:<20} {} ({} slots)\n", "context", size_text(context), module.slot_count);
  for (const BackendInfo& backend : all_backends())
    console::out("  {:<20} {}\n", fmt::format("scheduling, {}", backend.name),
                 size_text(backend.scheduling_bytes));
  console::out("  {:<20} {}\n", "stack, at most", size_text(plan.stack_size_bytes));
  if (request.model == MemoryModel::kPrivate)
    console::out("  {:<20} {} (data, heap, stack)\n", "memory, at most",
                 size_text(uint64_t{1} << plan.config.window_shift));
  console::out(
      "\nAll together: contexts {}, stacks at most {}.\n"
      "On a CPU, guest memory is taken page by page when it is touched; on a GPU at once.\n",
      size_text(context * options.cores), size_text(plan.stack_size_bytes * options.cores));
  return 0;
}

}  // namespace

void add_info_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "info",
      "List ISAs, backends and the devices of this machine; or what a program's cores take");
  auto options = std::make_shared<ProgramInfoOptions>();
  CLI::Option* program =
      command->add_option("--program", options->program, "State per core of this program");
  command->add_option("--cores", options->cores, "Simulated cores (1024)")
      ->check(CLI::Range(1u, kMostCores))
      ->needs(program);
  command->add_option("--memory", options->memory, "shared or private, as for `run`")
      ->check(CLI::IsMember({"shared", "private"}))
      ->needs(program);
  command->add_option("--memory-size", options->memory_size, "As for `run`")->needs(program);
  command->add_option("--stack-size", options->stack_size, "As for `run`")->needs(program);
  command->add_flag("--chips", options->chips, "List the chips that `run --chip` knows by name")
      ->excludes(program);
  command->add_flag("--json", options->json, "Print JSON; sizes are per core");
  command->callback([options, &action] {
    if (options->chips)
      action = [json = options->json] {
        console::out("{}", json ? chip::chip_list_json() : chip::chip_list_text());
        return 0;
      };
    else if (options->program.empty())
      action = options->json ? print_json_info : print_info;
    else
      action = [options] { return print_program_info(*options); };
  });
}

}  // namespace gpusim::host
