// `gpusim power calibrate` and `correct`: what a sensor does to power, and undoing it.
// docs/power.md.
#include <fmt/format.h>

#include <memory>

#include "device_sim/base/error.h"
#include "energy/power/calibrate.h"
#include "energy/power/correct.h"
#include "energy/power/meter.h"
#include "host/cli/power_commands.h"
#include "host/cli/power_picture.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = power;

struct CalibrateCommand {
  std::string trace, reference, output, name, slope;
  PictureFiles pictures;
  double utc_offset_hours = 0, most_offset_s = 0.5;
  bool sort = false, one_clock = false;
};

struct CorrectCommand {
  std::string trace, sensor = "none", output;
  PictureFiles pictures;
  std::optional<double> threshold_w, capacitance_s;
  std::string slope;
  std::optional<unsigned> points;
  bool sort = false;
};

pw::TimeOrder order(bool sort) { return sort ? pw::TimeOrder::kSort : pw::TimeOrder::kRefuse; }

std::optional<pw::Slope> slope_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return name == "backward" ? pw::Slope::kBackward : pw::Slope::kSymmetric;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) console::out("note: {}\n", note);
}

int calibrate(const CalibrateCommand& command) {
  if (!command.output.empty()) check_output_file("-o", command.output);
  command.pictures.check();
  pw::Trace trace = pw::read_trace(command.trace, order(command.sort));
  for (pw::Sample& s : trace.samples) s.time -= pw::Seconds(3600 * command.utc_offset_hours);
  std::optional<pw::Trace> reference;
  if (!command.reference.empty())
    reference = pw::read_trace_or_meter(command.reference, order(command.sort));
  const pw::Calibration c = pw::calibrate(trace, reference,
                                          {.slope = slope_of(command.slope),
                                           .has_one_clock = command.one_clock,
                                           .most_offset = pw::Seconds(command.most_offset_s),
                                           .name = command.name});
  const std::string text = pw::calibration_text(c);
  console::out("{}", text);
  print_notes(trace.notes);
  if (reference) print_notes(reference->notes);
  if (!command.output.empty())
    write_output_file("-o", command.output, pw::sensor_profile_json(c.profile));
  write_pictures(command.pictures, "What the power sensor says",
                 calibration_series(trace, reference, c), text);
  return 0;
}

int correct(const CorrectCommand& command) {
  if (!command.output.empty()) check_output_file("-o", command.output);
  command.pictures.check();
  pw::SensorProfile profile = pw::find_sensor_profile(command.sensor);
  if (command.capacitance_s) profile.capacitance = pw::Seconds(*command.capacitance_s);
  if (const auto slope = slope_of(command.slope)) profile.slope = *slope;
  if (command.points) profile.slope_points = *command.points;
  if (profile.slope_points < 3 || profile.slope_points > 99 || profile.slope_points % 2 == 0)
    throw Error(
        fmt::format("--points {}: an odd number from 3 to 99 is expected", profile.slope_points));
  if (command.capacitance_s && !(*command.capacitance_s >= 0))
    throw Error("--capacitance must not be negative");
  const pw::Trace trace = pw::read_trace(command.trace, order(command.sort));
  std::optional<pw::Watts> threshold;
  if (command.threshold_w) threshold = pw::Watts(*command.threshold_w);
  const pw::Correction c = pw::correct(trace, profile, threshold);

  console::out("sensor        {} (C {:.4f} s, gain {:.4f}, offset {:+.3f} W)\n", profile.name,
               profile.capacitance.value(), profile.gain, profile.offset.value());
  console::out("readings      {}, of which {} updates, in {:.3f} s\n", trace.samples.size(),
               c.updates.size(), trace.duration().value());
  console::out("as read       {:.3f} J over everything\n", c.as_read.value());
  if (c.threshold > pw::Watts(0))
    console::out("corrected     {:.3f} J in {:.4f} s above {:.2f} W: mean {:.2f} W\n",
                 c.energy.value(), c.active_time.value(), c.threshold.value(),
                 c.active_time > pw::Seconds(0) ? (c.energy / c.active_time).value() : 0.0);
  else
    console::out("corrected     {:.3f} J over everything: mean {:.2f} W\n", c.energy.value(),
                 c.active_time > pw::Seconds(0) ? (c.energy / c.active_time).value() : 0.0);
  if (profile.active_idle)
    console::out("above idle    {:.3f} J (active idle {:.2f} W)\n", c.above_idle.value(),
                 profile.active_idle->value());
  if (c.active.size() > 1 && c.active.size() <= 50) {
    console::out("\n{:>12}  {:>12}  {:>10}  {:>12}  {:>10}\n", "from s", "to s", "seconds", "J",
                 "mean W");
    for (const pw::Stretch& s : c.active) {
      const pw::Seconds length = s.end - s.begin;
      if (!(length > pw::Seconds(0))) continue;
      console::out("{:>12.4f}  {:>12.4f}  {:>10.4f}  {:>12.4f}  {:>10.2f}\n", s.begin.value(),
                   s.end.value(), length.value(), s.energy.value(), (s.energy / length).value());
    }
  }
  if (!trace.intervals.empty()) {
    console::out("\n{:<24}  {:>10}  {:>12}  {:>12}\n", "interval", "seconds", "as read J",
                 "corrected J");
    for (const pw::Interval& i : trace.intervals)
      console::out("{:<24}  {:>10.4f}  {:>12.4f}  {:>12.4f}\n", i.name, (i.end - i.begin).value(),
                   pw::trapezoid(trace.samples, i.begin, i.end).value(),
                   pw::trapezoid(c.true_power, i.begin, i.end).value());
  }
  print_notes(trace.notes);
  print_notes(c.notes);
  if (!command.output.empty()) {
    pw::Trace corrected{.source = trace.source + ", corrected as " + profile.name,
                        .samples = c.true_power,
                        .intervals = trace.intervals,
                        .notes = c.notes,
                        .is_partial = trace.is_partial};
    write_output_file("-o", command.output, pw::trace_csv(corrected));
  }
  write_pictures(command.pictures, "Power, corrected as " + profile.name,
                 {series_of("corrected", c.true_power), series_of("as read", trace.samples)},
                 fmt::format("corrected {:.4f} J in {:.4f} s\nas read   {:.4f} J in {:.4f} s\n",
                             c.energy.value(), c.active_time.value(), c.as_read.value(),
                             trace.duration().value()));
  return 0;
}

}  // namespace

void add_power_calibrate(CLI::App& power, Action& action) {
  const auto o = std::make_shared<CalibrateCommand>();
  CLI::App* c =
      power.add_subcommand("calibrate", "A sensor's lag, window, gain and offset from a recording");
  c->add_option("TRACE", o->trace, "Recording in which loads start and stop")->required();
  c->add_option("--reference", o->reference,
                "True power meanwhile: a recording, or an external meter's PMD_data.bin or its "
                "folder");
  c->add_option("--utc-offset", o->utc_offset_hours,
                "Hours that the recording's clock is ahead of UTC (nvidia-smi logs local time)");
  c->add_option("--most-offset", o->most_offset_s,
                "Seconds that the two clocks may differ besides (0.5)")
      ->check(CLI::Range(0.0, 10.0));
  c->add_flag("--one-clock", o->one_clock,
              "Both have one clock: what they are apart is the sensor's delay");
  c->add_option("--slope", o->slope, "Formula of dP/dt that C is fitted for (the better one)")
      ->check(CLI::IsMember({"symmetric", "backward"}));
  c->add_option("--name", o->name, "Name in the profile");
  c->add_flag("--sort", o->sort, "Sort samples whose times fall, instead of refusing them");
  c->add_option("-o,--output", o->output, "Write the profile (JSON) for `power correct --sensor`");
  c->add_option("--svg", o->pictures.svg, "Write a chart");
  c->add_option("--html", o->pictures.html, "Write a page with a chart");
  c->callback([o, &action] { action = [o] { return calibrate(*o); }; });
}

void add_power_correct(CLI::App& power, Action& action) {
  const auto o = std::make_shared<CorrectCommand>();
  CLI::App* c = power.add_subcommand("correct", "True power and energy from a sensor's readings");
  c->add_option("TRACE", o->trace, "Recording: CSV of `power record` or nvidia-smi")->required();
  c->add_option("--sensor", o->sensor, "k20, none, or a profile of `power calibrate` (none)");
  c->add_option("--capacitance", o->capacitance_s, "C in seconds, instead of the profile's");
  c->add_option("--slope", o->slope, "Formula of dP/dt, instead of the profile's")
      ->check(CLI::IsMember({"symmetric", "backward"}));
  c->add_option("--points", o->points,
                "Updates that dP/dt is taken from: 3, or more for a smoother one");
  c->add_option("--threshold", o->threshold_w,
                "Integrate what is above these watts (4 % above the profile's active idle)");
  c->add_flag("--sort", o->sort, "Sort samples whose times fall, instead of refusing them");
  c->add_option("-o,--output", o->output, "Write corrected power as CSV");
  c->add_option("--svg", o->pictures.svg, "Write a chart");
  c->add_option("--html", o->pictures.html, "Write a page with a chart");
  c->callback([o, &action] { action = [o] { return correct(*o); }; });
}

}  // namespace gpusim::host
