// `gpusim energy estimate, targets, trace, timeline, log`: the instruction-class model.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "energy/builtin_targets.h"
#include "energy/power_log.h"
#include "energy/report.h"
#include "energy/schedule.h"
#include "energy/trace.h"
#include "host/cli/commands.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {
using namespace gpusim::energy;

constexpr const char* kTargetHelp =
    "Names with commas between, all, or files .json (gpusim energy targets lists them)";

double not_negative(const std::string& option, double value) {
  if (!std::isfinite(value) || value < 0)
    throw Error(fmt::format("{} {}: expected a number that is not negative", option, value));
  return value;
}

void print(const std::string& text) { console::out("{}", text); }

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  write_output_file(
      "--json", path,
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// "1000000" or "1000000x3": bytes, and how many times.
TransferWork parse_transfer(const std::string& text) {
  const size_t times = text.find('x');
  TransferWork work{
      .size = Bytes(static_cast<double>(parse_size("--transfer", text.substr(0, times)))),
      .count = 1};
  if (times != std::string::npos) {
    const std::string count = text.substr(times + 1);
    if (!is_number(count) || count.size() > 15)
      throw Error(fmt::format("--transfer {}: expected SIZE or SIZExCOUNT, as 64Kx1000", text));
    work.count = std::stod(count);
  }
  return work;
}

PtxClasses scheme_of(const std::string& name) {
  return name == "thesis" ? PtxClasses::kThesis : PtxClasses::kOurs;
}

void add_classes(CLI::App& command, std::string& classes) {
  command
      .add_option("--classes", classes,
                  "ours, or thesis: of kernels (PTX), moves and conversions are arithmetic")
      ->check(CLI::IsMember({"ours", "thesis"}));
}

struct EstimateArguments {
  std::string input, targets, json, cpu, cpu_target, classes = "ours";
  double seconds = -1;
  bool has_seconds = false;
  std::vector<std::string> transfers;
};

int run_estimate(const EstimateArguments& arguments) {
  if (!arguments.json.empty()) check_output_file("--json", arguments.json);
  const std::vector<Target> targets = find_targets(arguments.targets);
  const Activity activity = load_activity(arguments.input, scheme_of(arguments.classes));
  EstimateOptions options;
  if (arguments.has_seconds) {
    options.time = Seconds(not_negative("--seconds", arguments.seconds));
    if (options.time->value() == 0) throw Error("--seconds 0: nothing runs in no time");
  }
  for (const std::string& text : arguments.transfers)
    options.transfers.push_back(parse_transfer(text));
  if (arguments.cpu.empty() != arguments.cpu_target.empty())
    throw Error("--cpu FILE and --cpu-target NAME go together");
  if (!arguments.cpu.empty()) {
    const std::vector<Target> cpu = find_targets(arguments.cpu_target);
    if (cpu.size() != 1) throw Error("--cpu-target: name one target");
    const Activity work = load_activity(arguments.cpu);
    options.cpu_energy = dynamic_energy(cpu[0], work.classes, work.memory_is_placed);
  }
  std::vector<Estimate> estimates;
  for (const Target& target : targets) estimates.push_back(estimate(target, activity, options));
  if (!arguments.json.empty()) write_json(arguments.json, report_json(activity, estimates));
  print(report_text(activity, estimates));
  return 0;
}

// The targets' files as they are.
int print_json_targets(const std::string& names) {
  if (!names.empty()) find_targets(names);  // refuses unknown and bad ones
  const bool all = names.empty() || names == "all";
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const EmbeddedFile& target : builtin_target_files()) {
    const std::string name =
        std::string(target.name).substr(0, std::string(target.name).rfind('.'));
    if (all || ("," + names + ",").find("," + name + ",") != std::string::npos)
      json.push_back(nlohmann::ordered_json::parse(target.text));
  }
  std::istringstream list(all ? "" : names);
  for (std::string name; std::getline(list, name, ',');)
    if (name.ends_with(".json")) json.push_back(nlohmann::ordered_json::parse(read_text(name)));
  print(json.dump(2) + "\n");
  return 0;
}

int run_targets(const std::string& name, bool json) {
  if (json) return print_json_targets(name);
  if (name.empty()) {
    print(targets_text());
    return 0;
  }
  bool first = true;
  for (const Target& target : find_targets(name)) {
    if (!first) print("\n");
    first = false;
    print(target_text(target));
  }
  return 0;
}

struct TraceArguments {
  std::string input, output, name, classes = "ours";
  bool per_function = false;
};

int run_trace(const TraceArguments& arguments) {
  if (!arguments.output.empty()) check_output_file("-o", arguments.output);
  const Activity activity = load_activity(arguments.input, scheme_of(arguments.classes));
  std::vector<ActivityPart> kernels;
  if (arguments.per_function) {
    if (activity.functions.empty())
      throw Error(fmt::format("{}: no functions in these statistics", arguments.input));
    kernels = activity.functions;
    for (ActivityPart& kernel : kernels)
      if (kernel.name.empty()) kernel.name = "(unknown)";
  } else {
    const std::string name = arguments.name.empty()
                                 ? std::filesystem::path(arguments.input).stem().string()
                                 : arguments.name;
    kernels = {{name, activity.classes}};
  }
  if (arguments.output.empty())
    print(trace_text(kernels));
  else
    write_output_file("-o", arguments.output, trace_text(kernels));
  return 0;
}

struct TimelineArguments {
  std::string schedule, target, csv;
  bool json = false;
};

nlohmann::ordered_json curve_json(const Target& target, const PowerCurve& curve) {
  auto segments = nlohmann::ordered_json::array();
  for (const Segment& s : curve.segments)
    segments.push_back({{"begin_s", s.begin.value()},
                        {"end_s", s.end.value()},
                        {"power_W", s.power.value()},
                        {"energy_J", s.energy().value()},
                        {"what", s.what},
                        {"state", s.state}});
  return {{"target", target.name},
          {"duration_s", curve.duration().value()},
          {"energy_J", curve.energy.value()},
          {"mean_W", curve.average().value()},
          {"segments", segments}};
}

int run_timeline(const TimelineArguments& arguments) {
  if (!arguments.csv.empty()) check_output_file("--csv", arguments.csv);
  const std::vector<Target> targets = find_targets(arguments.target);
  if (targets.size() != 1) throw Error("--target: name one target");
  const std::string folder = std::filesystem::path(arguments.schedule).parent_path();
  const std::vector<Step> steps =
      parse_schedule(targets[0], read_text(arguments.schedule), arguments.schedule, folder);
  const PowerCurve curve = power_curve(targets[0], steps);
  if (!arguments.csv.empty()) write_output_file("--csv", arguments.csv, curve_csv(curve));
  if (arguments.json)
    print(curve_json(targets[0], curve)
              .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n");
  else
    print(curve_text(targets[0], curve));
  return 0;
}

int run_log(const std::string& path, double idle, bool has_idle, bool as_json) {
  const std::vector<PowerSample> log = parse_power_log(read_text(path), path);
  const PowerSummary s = summarize(log);
  if (as_json) {
    nlohmann::ordered_json json = {
        {"file", path},
        {"samples", log.size()},
        {"duration_s", s.duration.value()},
        {"in", {{"mean_W", s.mean_in.value()}, {"energy_J", s.in.value()}}},
        {"out", {{"mean_W", s.mean_out.value()}, {"energy_J", s.out.value()}}},
        {"supplementary",
         {{"mean_W", s.mean_supplementary.value()}, {"energy_J", s.supplementary.value()}}}};
    if (has_idle) {
      const Watts base(not_negative("--idle", idle));
      json["out_above_idle"] = {{"mean_W", (s.mean_out - base).value()},
                                {"energy_J", (s.out - base * s.duration).value()}};
    }
    print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return 0;
  }
  print(fmt::format("{}: {} samples over {}\n\n{:<28} {:>12} {:>12}\n", path, log.size(),
                    pretty(s.duration), "", "mean", "energy"));
  const auto row = [](const char* name, Watts mean, Joules energy) {
    print(fmt::format("{:<28} {:>12} {:>12}\n", name, pretty(mean), pretty(energy)));
  };
  row("into the power supply", s.mean_in, s.in);
  row("out of it", s.mean_out, s.out);
  row("supplementary GPU input", s.mean_supplementary, s.supplementary);
  if (has_idle) {
    const Watts base(not_negative("--idle", idle));
    row("out, above idle", s.mean_out - base, s.out - base * s.duration);
  }
  return 0;
}

}  // namespace

void add_energy_model_commands(CLI::App& energy, Action& action) {
  CLI::App* command =
      energy.add_subcommand("estimate", "Joules of a run or a trace on one or many targets");
  auto arguments = std::make_shared<EstimateArguments>();
  command
      ->add_option("FILE", arguments->input,
                   "Statistics of `gpusim run --stats`, or a trace of kernels")
      ->required();
  command->add_option("--target", arguments->targets, kTargetHelp)
      ->required()
      ->transform(list_value());
  add_classes(*command, arguments->classes);
  command->add_option("--json", arguments->json, "Write the estimates to this file, too");
  CLI::Option* seconds = command->add_option(
      "--seconds", arguments->seconds, "How long it takes, instead of the target's own timing");
  repeatable(
      command->add_option("--transfer", arguments->transfers,
                          "Data moved between host and device: SIZE or SIZExCOUNT; repeatable"));
  command->add_option("--cpu", arguments->cpu,
                      "Statistics or trace of the program's sequential part");
  command->add_option("--cpu-target", arguments->cpu_target, "Where that part runs")
      ->transform(list_value());
  command->callback([arguments, seconds, &action] {
    arguments->has_seconds = seconds->count() > 0;
    action = [arguments] { return run_estimate(*arguments); };
  });

  command = energy.add_subcommand("targets", "List the targets, or all that is known of some");
  auto targets = std::make_shared<std::pair<std::string, bool>>();
  command->add_option("NAME", targets->first, kTargetHelp)->transform(list_value());
  command->add_flag("--json", targets->second, "Print the targets' files, an array of them");
  command->callback([targets, &action] {
    action = [targets] { return run_targets(targets->first, targets->second); };
  });

  command = energy.add_subcommand("trace", "Write statistics as a trace of kernels");
  auto trace = std::make_shared<TraceArguments>();
  command->add_option("FILE", trace->input, "Statistics of `gpusim run --stats`, or a trace")
      ->required();
  command->add_option("-o,--output", trace->output, "Write to this file (standard output)");
  command->add_option("--name", trace->name, "The kernel's name (the file's)");
  command->add_flag("--per-function", trace->per_function, "One kernel per function");
  add_classes(*command, trace->classes);
  command->callback([trace, &action] { action = [trace] { return run_trace(*trace); }; });

  command = energy.add_subcommand(
      "timeline", "Power over time of kernels, transfers and pauses, and its integral");
  auto timeline = std::make_shared<TimelineArguments>();
  command->add_option("SCHEDULE", timeline->schedule, "JSON file (docs/energy.md)")->required();
  command->add_option("--target", timeline->target, "One target")
      ->required()
      ->transform(list_value());
  command->add_option("--csv", timeline->csv, "Write the curve to this file, too");
  command->add_flag("--json", timeline->json, "Print the curve as JSON");
  command->callback(
      [timeline, &action] { action = [timeline] { return run_timeline(*timeline); }; });

  command = energy.add_subcommand("log", "Mean power and energy of a power supply's log");
  struct LogArguments {
    std::string file;
    double idle = 0;
    bool json = false;
  };
  auto log = std::make_shared<LogArguments>();
  command->add_option("FILE", log->file, "Corsair log with decimal commas")->required();
  CLI::Option* idle = command->add_option("--idle", log->idle, "Watts at idle, to take off");
  command->add_flag("--json", log->json, "Print JSON");
  command->callback([log, idle, &action] {
    const bool has_idle = idle->count() > 0;
    action = [log, has_idle] { return run_log(log->file, log->idle, has_idle, log->json); };
  });
}

}  // namespace gpusim::host
