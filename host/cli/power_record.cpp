// `gpusim power record`: samples a source while a command runs. docs/power.md.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "device_sim/base/child_process.h"
#include "device_sim/base/error.h"
#include "energy/power/recorder.h"
#include "host/cli/power_commands.h"
#include "host/cli/power_picture.h"
#include "host/console.h"
#include "host/exit_status.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = power;

struct RecordCommand {
  SourceArguments from;
  std::string output;
  std::vector<std::string> command;
  double rate_hz = 100, before_s = 0, after_s = 0;
  std::optional<double> seconds, error_w;
  bool quiet = false;
  PictureFiles pictures;
};

volatile sig_atomic_t interrupts = 0;

// Ctrl-C ends the recording, not us: what was recorded is to be kept. The command, of the same
// terminal, gets its own.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupts = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupts = interrupts + 1; };
    ::sigaction(SIGINT, &action, &int_);
    ::sigaction(SIGTERM, &action, &term_);
  }
  ~InterruptGuard() {
    ::sigaction(SIGINT, &int_, nullptr);
    ::sigaction(SIGTERM, &term_, nullptr);
  }

 private:
  struct sigaction int_ {
  }, term_{};
};

void print_summary(const pw::Trace& trace, const pw::EnergySummary& e, const std::string& what,
                   std::optional<double> error_w) {
  // On standard error: standard output is the command's.
  console::err("source   {}\n", trace.source);
  console::err(
      "samples  {} in {:.3f} s{}, {} updates of the sensor{}\n", e.samples, e.duration.value(),
      what, e.updates,
      e.update_period ? fmt::format(" ({:.2f} ms apart)", e.update_period->value() * 1e3) : "");
  console::err("power    mean {:.3f} W, peak {:.3f} W, least {:.3f} W\n", e.mean.value(),
               e.peak.value(), e.least.value());
  if (e.uncertainty)
    console::err("energy   {:.4f} J +- {:.2g} J ({})\n", e.energy.value(), e.uncertainty->value(),
                 error_w ? fmt::format("sampling, and {:g} W of the sensor", *error_w)
                         : "sampling alone; --sensor-error W adds the sensor's");
  else
    console::err(
        "energy   {:.4f} J; the reading never changed: how far it is off is not known "
        "(--sensor-error W)\n",
        e.energy.value());
  if (e.counted)
    console::err("counted  {:.4f} J in {:.3f} s by the source's own counter: {:.3f} W\n",
                 e.counted->value(), e.counted_for.value(), (*e.counted / e.counted_for).value());
  if (e.skipped > pw::Seconds(0))
    console::err("note: {:.3f} s of gaps are not in the energy\n", e.skipped.value());
  for (const std::string& note : trace.notes) console::err("note: {}\n", note);
}

int record(const RecordCommand& command) {
  if (!command.output.empty()) check_output_file("-o", command.output);
  command.pictures.check();
  const auto source = command.from.open();
  if (source->is_virtual() && !command.command.empty())
    throw Error(command.from.source +
                ": it has its own, virtual time; a command cannot run in it (leave it out to "
                "record the source until it ends)");
  if (source->is_endless() && !command.seconds)
    throw Error(command.from.source + ": it never ends: --seconds S, or \"length_s\" in the file");
  if (!source->is_virtual() && command.command.empty() && !command.seconds)
    throw Error("what is to be recorded? A command after --, or --seconds S");
  const bool is_live = !command.quiet && ::isatty(STDERR_FILENO) != 0;
  const auto show = [&](const pw::RecordStatus& s) {
    if (!is_live || source->is_virtual()) return;
    console::err("\r{:9.2f} s  {:8.2f} W  mean {:8.2f} W  peak {:8.2f} W  {:12.3f} J  ",
                 s.elapsed.value(), s.now.value(), s.mean.value(), s.peak.value(),
                 s.energy.value());
  };
  const InterruptGuard guard;
  pw::RecordOptions options{.rate = pw::Hertz(command.rate_hz)};
  if (command.seconds) options.most = pw::Seconds(*command.seconds);
  // The sensor has to answer before anything is started.
  if (!source->is_virtual()) source->poll();

  const pw::Seconds begin = source->now();
  std::optional<ChildProcess> child;
  std::optional<pw::Interval> ran;
  int status = 0;
  bool was_told = false;
  std::optional<pw::Seconds> ended;
  const auto is_over = [&] {
    const pw::Seconds now = source->now();
    if (!child && !command.command.empty() && now >= begin + pw::Seconds(command.before_s)) {
      child.emplace(command.command);
      const pw::Seconds began = pw::monotonic_now();
      ran = pw::Interval{command.command[0], began, began};
    }
    if (child && !ended) {
      if (const auto result = child->poll()) {
        ended = ran->end = pw::monotonic_now();
        status = *result;
      }
    }
    if (interrupts > 0) {
      // A terminal has told the command already.
      if (child && !ended && !was_told && ::isatty(STDIN_FILENO) == 0) child->send(SIGINT);
      was_told = true;
      return interrupts > 1 || !child || ended.has_value();
    }
    return ended && now >= *ended + pw::Seconds(command.after_s);
  };
  pw::Trace trace = pw::record(*source, options, is_over, show);
  if (is_live && !source->is_virtual()) console::err("\n");
  const bool source_failed = trace.is_partial;
  if (child && !ended) {
    // The time is up, or the source is gone. The command is the user's: it is let run.
    if (interrupts > 1) child->send(SIGTERM);
    status = child->wait();
    ran->end = trace.samples.empty() ? ran->begin : trace.samples.back().time;
    if (!source_failed) trace.notes.push_back("the recording ended before the command did");
    trace.is_partial = true;
  }
  if (interrupts > 0) {
    trace.is_partial = true;
    trace.notes.push_back("interrupted");
  }
  if (ran) trace.intervals.push_back(*ran);
  if (trace.samples.empty())
    throw Error(trace.notes.empty() ? command.from.source + ": no sample was read"
                                    : trace.notes[0]);
  if (!command.output.empty()) write_output_file("-o", command.output, pw::trace_csv(trace));
  write_pictures(command.pictures, "Power as read", {series_of("as read", trace.samples)}, "");
  print_summary(trace, pw::summarize_energy(trace, ran, pw::Watts(command.error_w.value_or(0))),
                ran ? " of the command" : "", command.error_w);
  if (child) return status;
  if (interrupts > 0) return kExitInterrupted;
  return source_failed ? kExitUserError : 0;
}

}  // namespace

void add_power_record(CLI::App& power, const std::vector<std::string>& command, Action& action) {
  const auto o = std::make_shared<RecordCommand>();
  CLI::App* c = power.add_subcommand("record", "Sample power while a command runs: -- COMMAND...");
  add_source_options(*c, o->from);
  c->add_option("-o,--output", o->output, "Write the samples as CSV");
  c->add_option("--svg", o->pictures.svg, "Write a chart");
  c->add_option("--html", o->pictures.html, "Write a page with a chart");
  c->add_option("--rate", o->rate_hz, "Samples a second (100)")->check(CLI::Range(0.01, 1e6));
  c->add_option("--seconds", o->seconds, "Record no longer than this")
      ->check(CLI::Range(0.001, 1e7));
  c->add_option("--before", o->before_s, "Seconds to record before the command starts (0)")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_option("--after", o->after_s, "Seconds to record after it has ended (0)")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_option("--sensor-error", o->error_w, "Watts that the sensor may be wrong by (NVML: 5)")
      ->check(CLI::Range(0.0, 1e6));
  c->add_flag("--quiet", o->quiet, "No live line");
  c->callback([o, &command, &action] {
    o->command = command;
    action = [o] { return record(*o); };
  });
}

}  // namespace gpusim::host
