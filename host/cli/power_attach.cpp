// `gpusim power attach`: joules of each kernel of a CUDA program as it is.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "device_sim/base/error.h"
#include "energy/power/attach/session.h"
#include "energy/power/attach/timeline.h"
#include "energy/power/compare_report.h"
#include "host/cli/power_commands.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = gpusim::power;
namespace at = gpusim::power::attach;

struct Options {
  SourceArguments source;
  std::vector<std::string> command;
  std::string timing = "synchronous", output, json, timeline, profile, truth, library;
  double rate = 1000, lead = 0.5, tail = 1.0;
  bool each = false, no_calls = false;
};

at::Timing parse_timing(const std::string& text) {
  if (text == "synchronous") return at::Timing::kSynchronous;
  if (text == "events") return at::Timing::kEvents;
  if (text == "callbacks") return at::Timing::kCallbacks;
  throw Error(fmt::format("--timing {}: synchronous, events or callbacks", text));
}

const char* name_of(at::Timing timing) {
  switch (timing) {
    case at::Timing::kSynchronous:
      return "synchronous: the host waits for each operation";
    case at::Timing::kEvents:
      return "events around each operation";
    default:
      return "callbacks before and after each operation";
  }
}

std::vector<pw::Interval> intervals_of(const at::Session& session) {
  std::vector<pw::Interval> list;
  for (const at::ProcessLog& log : session.logs)
    for (const at::Operation& op : log.operations)
      list.push_back({at::readable(op.name), op.begin, op.end});
  return list;
}

void print_notes(const at::Session& session) {
  for (const at::ProcessLog& log : session.logs) {
    for (const std::string& note : log.notes) console::out("note: process {}: {}\n", log.pid, note);
    if (log.dropped > 0)
      console::out("note: process {}: {} records did not fit and are missing\n", log.pid,
                   log.dropped);
    const auto estimated = std::count_if(log.operations.begin(), log.operations.end(),
                                         [](const at::Operation& o) { return o.is_estimated; });
    if (estimated > 0)
      console::out("note: process {}: {} operations have the host's times\n", log.pid, estimated);
    const auto elsewhere = std::count_if(log.operations.begin(), log.operations.end(),
                                         [](const at::Operation& o) { return o.device != 0; });
    if (elsewhere > 0)
      console::out(
          "note: process {}: {} operations ran on other GPUs than the first; power is of one\n",
          log.pid, elsewhere);
  }
  for (const std::string& note : session.trace.notes) console::out("note: {}\n", note);
}

int run(const Options& o) {
  if (o.command.empty())
    throw Error("name a program: gpusim power attach [OPTIONS] -- PROGRAM [ARGUMENT]...");
  at::SessionOptions options;
  options.command = o.command;
  options.timing = parse_timing(o.timing);
  options.rate = pw::Hertz(o.rate);
  options.lead = pw::Seconds(o.lead);
  options.tail = pw::Seconds(o.tail);
  options.has_calls = !o.no_calls;
  options.library = o.library;
  if (!o.output.empty()) check_output_file("-o", o.output);
  if (!o.json.empty()) check_output_file("--json", o.json);
  if (!o.timeline.empty()) check_output_file("--timeline", o.timeline);
  const bool is_simulated = o.source.source.starts_with("sim:");
  if (is_simulated && o.truth.empty())
    throw Error(
        "--source sim:FILE is a sensor without a GPU: --truth FILE must say what was drawn "
        "(lines BEGIN END WATTS NAME, and \"# idle WATTS\")");
  pw::MethodOptions methods;
  if (!o.profile.empty()) {
    methods.profile = pw::find_sensor_profile(o.profile);
    methods.has_profile = true;
    methods.active_idle = methods.profile.active_idle;
  }
  std::unique_ptr<pw::PowerSource> source;
  if (!is_simulated) {
    source = o.source.open();
    if (source->is_virtual())
      throw Error(fmt::format("--source {}: its clock is not this machine's", o.source.source));
  }
  at::Session session = at::run_session(options, source.get());
  session.trace.intervals = intervals_of(session);
  std::optional<pw::Curve> truth;
  if (!o.truth.empty() && !session.trace.intervals.empty()) truth = at::read_truth(o.truth);
  if (is_simulated && truth)
    session.trace.samples =
        at::simulated_readings(o.source.source.substr(4), *truth, session.begin - options.lead,
                               session.end + options.tail, options.rate)
            .samples;
  if (is_simulated) session.trace.source = o.source.source;

  if (session.logs.empty()) {
    console::out(
        "no call of CUDA was seen: the program made none, or it (or what it starts) is statically "
        "linked, set-user-ID, or clears LD_PRELOAD\n");
    return session.status;
  }
  size_t operations = 0, calls = 0;
  for (const at::ProcessLog& log : session.logs) {
    operations += log.operations.size();
    calls += log.calls.size();
  }
  console::out("{} operations on the GPU, {} calls of CUDA, {} processes, {:.3f} s; times: {}\n\n",
               operations, calls, session.logs.size(), (session.end - session.begin).value(),
               name_of(options.timing));
  if (operations > 0 && !session.trace.samples.empty()) {
    pw::Comparison comparison = pw::compare_methods(session.trace, session.trace.intervals, methods,
                                                    truth ? &*truth : nullptr);
    if (o.each) console::out("{}\n", pw::interval_table(comparison));
    console::out("{}", pw::comparison_table(comparison));
    if (!o.json.empty()) write_output_file("--json", o.json, pw::comparison_json(comparison));
  }
  print_notes(session);
  if (!o.output.empty()) write_output_file("-o", o.output, pw::trace_csv(session.trace));
  if (!o.timeline.empty()) {
    std::vector<pw::Sample> true_power;
    if (truth)
      for (const pw::Knot& k : truth->knots())
        if (k.time >= session.begin - options.lead)
          true_power.push_back({.time = k.time, .power = k.power});
    write_output_file("--timeline", o.timeline,
                      at::timeline_json(session.logs, session.trace, true_power));
  }
  return session.status;
}

}  // namespace

void add_power_attach(CLI::App& power, const std::vector<std::string>& command, Action& action) {
  CLI::App* c = power.add_subcommand(
      "attach", "Energy of each kernel of a CUDA program as it is: attach [OPTIONS] -- PROGRAM...");
  auto o = std::make_shared<Options>();
  add_source_options(*c, o->source);
  c->add_option("--timing", o->timing,
                "synchronous (the host waits for each kernel, as MTSM does), events or callbacks");
  c->add_option("--rate", o->rate, "Readings per second (1000)");
  c->add_option("--lead", o->lead, "Seconds of readings before the program (0.5)")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_option("--tail", o->tail, "Seconds of readings after it (1)")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_option("--profile", o->profile,
                "The sensor's profile, for corrected energies (a file; k20)");
  c->add_flag("--each", o->each, "A line for each kernel and copy, too");
  c->add_option("-o,--output", o->output,
                "Write readings and intervals here, for gpusim power compare");
  c->add_option("--json", o->json, "Write all figures");
  c->add_option("--timeline", o->timeline, "Write calls, kernels, copies and power for Perfetto");
  c->add_flag("--no-calls", o->no_calls, "Only kernels and copies, not each call of CUDA");
  c->add_option("--truth", o->truth, "What a simulated GPU drew, with --source sim:FILE");
  c->add_option("--library", o->library,
                "libgpusim_power_attach.so, where it is not beside gpusim");
  c->callback([o, &command, &action] {
    o->command = command;
    action = [o] { return run(*o); };
  });
}

}  // namespace gpusim::host
