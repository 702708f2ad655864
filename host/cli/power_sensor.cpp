// `gpusim power sensor`: what a sensor is like. docs/power.md.
#include <fmt/format.h>

#include <memory>

#include "device_sim/base/child_process.h"
#include "device_sim/base/error.h"
#include "energy/power/meter.h"
#include "energy/power/recorder.h"
#include "energy/power/sensor_report.h"
#include "energy/power/simulated.h"
#include "host/cli/power_commands.h"
#include "host/cli/power_picture.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = power;

struct SensorCommand {
  SourceArguments from;
  std::string trace, reference, output, json, record;
  PictureFiles pictures;
  std::vector<std::string> command;
  double seconds = 5, utc_offset_hours = 0;
  unsigned loads = 3;
};

struct Observation {
  pw::Trace trace;
  std::optional<pw::Trace> reference;
};

void poll_until(pw::PowerSource& source, pw::Trace& trace, const std::function<bool()>& is_over) {
  while (!is_over()) {
    const auto sample = source.poll();
    if (!sample) return;
    trace.samples.push_back(*sample);
  }
}

// Its kernel's highest power, on and off; the truth is the reference.
Observation watch_simulated(pw::SimulatedSource& source, const SensorCommand& command) {
  Observation o;
  o.trace.source = source.name();
  const pw::Seconds pause(command.seconds);
  const auto until = [&](pw::Seconds end) {
    poll_until(source, o.trace, [&] { return source.now() >= end; });
  };
  if (source.kernel().empty()) {
    until(pause * (2 * command.loads + 1));
  } else {
    pw::Watts most;
    for (const pw::Knot& k : source.kernel()) most = std::max(most, k.power);
    until(source.now() + pause);
    for (unsigned i = 0; i < command.loads; ++i) {
      // Of other lengths and levels, so that edges meet the sensor in other phases.
      const pw::Watts level = most * (1 - 0.2 * (i % 3));
      const pw::Seconds length = pause * (1 + 0.0137 * i);
      const pw::Seconds end = source.run({{pw::Seconds(0), level}, {length, level}});
      until(end);
      until(end + pause * (1 + 0.0071 * i));
    }
  }
  if (o.trace.samples.empty()) throw Error(source.name() + ": no sample was read");
  pw::Trace truth;
  truth.source = "the simulation's truth";
  constexpr double kStep = 0.0005;
  for (double t = 0; t <= o.trace.samples.back().time.value(); t += kStep)
    truth.samples.push_back({.time = pw::Seconds(t), .power = source.truth().at(pw::Seconds(t))});
  o.reference = std::move(truth);
  return o;
}

// Polls as fast as it can: at rest, and with the command started and awaited `loads` times.
Observation watch(pw::PowerSource& source, const SensorCommand& command) {
  Observation o;
  o.trace.source = source.name();
  const auto rest = [&] {
    const pw::Seconds end = source.now() + pw::Seconds(command.seconds);
    poll_until(source, o.trace, [&] { return source.now() >= end; });
  };
  rest();
  for (unsigned i = 0; i < command.loads && !command.command.empty(); ++i) {
    ChildProcess child(command.command);
    std::optional<int> status;
    poll_until(source, o.trace, [&] { return (status = child.poll()).has_value(); });
    if (status.value_or(0) != 0)
      throw Error(fmt::format("{}: it ended with status {}", command.command[0], *status));
    rest();
  }
  return o;
}

int sensor(const SensorCommand& command) {
  for (const auto& [option, path] :
       {std::pair("-o", &command.output), {"--json", &command.json}, {"--record", &command.record}})
    if (!path->empty()) check_output_file(option, *path);
  command.pictures.check();
  Observation o;
  if (!command.trace.empty()) {
    o.trace = pw::read_trace(command.trace);
    for (pw::Sample& s : o.trace.samples) s.time -= pw::Seconds(3600 * command.utc_offset_hours);
  } else {
    const auto source = command.from.open();
    auto* simulated = dynamic_cast<pw::SimulatedSource*>(source.get());
    if (source->is_virtual() && !command.command.empty())
      throw Error(command.from.source +
                  ": it has its own, virtual time; a command cannot run in it");
    o = simulated != nullptr ? watch_simulated(*simulated, command) : watch(*source, command);
  }
  if (!command.reference.empty()) o.reference = pw::read_trace_or_meter(command.reference);
  // A recording is kept even if nothing comes of it.
  if (!command.record.empty())
    write_output_file("--record", command.record, pw::trace_csv(o.trace));
  const bool has_one_clock = command.trace.empty() && command.reference.empty();
  const pw::SensorReport report =
      pw::analyse_sensor(o.trace, o.reference, {.has_one_clock = has_one_clock});
  const std::string text = pw::sensor_report_text(report);
  console::out("{}", text);
  for (const std::string& note : o.trace.notes) console::out("note: {}\n", note);
  if (!command.json.empty())
    write_output_file("--json", command.json, pw::sensor_report_json(report));
  if (!command.output.empty()) {
    if (!report.calibration) throw Error("-o: there is no profile to write: " + report.why_not);
    write_output_file("-o", command.output, pw::sensor_profile_json(report.calibration->profile));
  }
  write_pictures(command.pictures, "What the power sensor says",
                 report.calibration ? calibration_series(o.trace, o.reference, *report.calibration)
                                    : std::vector{series_of("as read", o.trace.samples)},
                 text);
  return 0;
}

}  // namespace

void add_power_sensor(CLI::App& power, const std::vector<std::string>& command, Action& action) {
  const auto o = std::make_shared<SensorCommand>();
  CLI::App* c = power.add_subcommand(
      "sensor", "What a sensor is like: period, window, lag, gain; -- COMMAND... is its load");
  add_source_options(*c, o->from);
  c->add_option("--trace", o->trace, "From a recording, instead of a source");
  c->add_option("--reference", o->reference, "True power meanwhile, as for `calibrate`");
  c->add_option("--utc-offset", o->utc_offset_hours,
                "Hours that the clock of --trace is ahead of UTC");
  c->add_option("--seconds", o->seconds, "Rest before and after each load (5)")
      ->check(CLI::Range(0.1, 600.0));
  c->add_option("--loads", o->loads, "How often the load is run (3)")->check(CLI::Range(1u, 1000u));
  c->add_option("--record", o->record, "Write the samples as CSV");
  c->add_option("-o,--output", o->output, "Write the profile for `power correct --sensor`");
  c->add_option("--json", o->json, "Write the report");
  c->add_option("--svg", o->pictures.svg, "Write a chart");
  c->add_option("--html", o->pictures.html, "Write a page with a chart");
  c->callback([o, &command, &action] {
    o->command = command;
    action = [o] { return sensor(*o); };
  });
}

}  // namespace gpusim::host
