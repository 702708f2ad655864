// `gpusim power profile`: the power of one short kernel, from a slow sensor. docs/power.md.
#include <fmt/format.h>

#include <memory>

#include "device_sim/base/error.h"
#include "device_sim/base/page.h"
#include "energy/power/chart.h"
#include "energy/power/command_workload.h"
#include "energy/power/profile.h"
#include "energy/power/simulated.h"
#include "host/cli/power_commands.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = power;

struct ProfileCommand {
  SourceArguments from;
  std::string trace, kernel, output, svg, html, json;
  std::vector<std::string> command;
  unsigned runs = 200;
  std::optional<double> interval_ms;
  double pause_ms = 30, delay_ms = 0, launch_ms = 0;
  uint64_t seed = 1;
  bool online = false, sort = false;
};

// Pictures show the kernel with as much time before and after it, not all waits.
pw::PowerProfile cropped(const pw::PowerProfile& profile) {
  pw::PowerProfile part = profile;
  std::erase_if(part.points, [&](const pw::ProfilePoint& p) {
    return p.time < -profile.kernel || p.time > profile.kernel * 2;
  });
  return part;
}

pw::ChartSeries dots(const pw::PowerProfile& profile) {
  pw::ChartSeries series{.name = "updates of the sensor", .has_line = false};
  for (const pw::ProfilePoint& p : profile.points) series.points.emplace_back(p.time, p.power);
  return series;
}

pw::ChartSeries curve(const pw::PowerProfile& profile) {
  pw::ChartSeries series{.name = "median"};
  for (const pw::ProfilePoint& p : pw::profile_curve(profile, 120))
    series.points.emplace_back(p.time, p.power);
  return series;
}

std::string profile_page(const pw::PowerProfile& profile, const std::string& title) {
  page::Page page(title);
  page.set_subtitle(fmt::format("{}, {} runs of {:.3f} ms", profile.source, profile.runs,
                                profile.kernel.value() * 1e3));
  page.add_section("Power over the kernel's time");
  const auto points_of = [](const pw::ChartSeries& s) {
    page::Json points = page::Json::array();
    for (const auto& [t, w] : s.points)
      points.push_back({page::rounded(t.value() * 1e3), page::rounded(w.value())});
    return points;
  };
  page::Json chart = {{"kind", "lines"},
                      {"title", "Power"},
                      {"x", {{"label", "ms since the kernel's start"}}},
                      {"y", {{"label", "power"}, {"unit", "W"}, {"min", 0}}},
                      {"series", page::Json::array()}};
  chart["series"].push_back({{"name", "updates of the sensor"},
                             {"style", "reference"},
                             {"points", points_of(dots(cropped(profile)))}});
  chart["series"].push_back({{"name", "median"}, {"points", points_of(curve(cropped(profile)))}});
  page.add_chart(chart);
  page.add_section("Numbers");
  page.add_code(pw::profile_text(profile));
  return page.html();
}

int profile(const ProfileCommand& command) {
  for (const auto& [option, path] : {std::pair("-o", &command.output),
                                     {"--svg", &command.svg},
                                     {"--html", &command.html},
                                     {"--json", &command.json}})
    if (!path->empty()) check_output_file(option, *path);
  pw::ProfileOptions options{
      .runs = command.runs, .delay = pw::Seconds(command.delay_ms * 1e-3), .seed = command.seed};
  if (command.interval_ms) {
    if (!(*command.interval_ms > 0)) throw Error("--interval: more than 0 ms is expected");
    options.interval = pw::Seconds(*command.interval_ms * 1e-3);
  }
  pw::PowerProfile result;
  if (!command.trace.empty()) {
    const auto order = command.sort ? pw::TimeOrder::kSort : pw::TimeOrder::kRefuse;
    result = pw::profile_from_trace(pw::read_trace(command.trace, order), command.kernel, options);
  } else {
    const auto source = command.from.open();
    std::unique_ptr<pw::Workload> workload;
    if (auto* simulated = dynamic_cast<pw::SimulatedSource*>(source.get())) {
      if (!command.command.empty())
        throw Error(
            "a simulated sensor runs in virtual time: it profiles its own kernel, not a command");
      if (simulated->kernel().empty())
        throw Error(command.from.source + ": it has no \"kernel\" that could be profiled");
      workload = std::make_unique<pw::SimulatedWorkload>(*simulated,
                                                         pw::Seconds(command.launch_ms * 1e-3));
    } else if (source->is_virtual()) {
      throw Error(command.from.source +
                  ": nothing can be run beside a recording; --trace makes a "
                  "profile of one");
    } else {
      if (command.command.empty())
        throw Error("what is to be profiled? A command after --, run once for each sample");
      workload = std::make_unique<pw::CommandWorkload>(command.command);
    }
    result = command.online ? pw::profile_online(*source, *workload,
                                                 pw::Seconds(command.pause_ms * 1e-3), options)
                            : pw::profile_offline(*source, *workload, options);
  }
  console::out("{}", pw::profile_text(result));
  const std::string title =
      command.command.empty() ? "Power profile" : "Power profile of " + command.command[0];
  if (!command.output.empty()) write_output_file("-o", command.output, pw::profile_csv(result));
  if (!command.json.empty()) write_output_file("--json", command.json, pw::profile_json(result));
  if (!command.svg.empty()) {
    std::vector<pw::ChartMark> marks;
    if (result.rise) marks.push_back({*result.rise, "rises"});
    if (result.fall) marks.push_back({*result.fall, "falls"});
    write_output_file(
        "--svg", command.svg,
        pw::power_chart(title, {dots(cropped(result)), curve(cropped(result))}, marks));
  }
  if (!command.html.empty()) write_output_file("--html", command.html, profile_page(result, title));
  return 0;
}

}  // namespace

void add_power_profile(CLI::App& power, const std::vector<std::string>& command, Action& action) {
  const auto o = std::make_shared<ProfileCommand>();
  CLI::App* c = power.add_subcommand(
      "profile", "High-resolution power of a short kernel from many runs of it");
  add_source_options(*c, o->from);
  c->add_option("--trace", o->trace, "From a recording with intervals, instead of runs");
  c->add_option("--kernel", o->kernel, "Name of the intervals of --trace (all)");
  c->add_option("--runs", o->runs, "How often it is run (200)")->check(CLI::Range(10u, 1000000u));
  c->add_option("--interval", o->interval_ms, "The sensor's sampling interval in ms (measured)");
  c->add_option("--delay", o->delay_ms, "ms to watch longer than the kernel and an interval (0)")
      ->check(CLI::Range(0.0, 60000.0));
  c->add_flag("--online", o->online, "One reading per run, times from synchronised clocks");
  c->add_option("--pause", o->pause_ms, "--online: at most this long between runs, ms (30)")
      ->check(CLI::Range(0.0, 60000.0));
  c->add_option("--launch", o->launch_ms, "sim: ms from the launch to the kernel's start (0)")
      ->check(CLI::Range(0.0, 1000.0));
  c->add_option("--seed", o->seed, "Of the random waits (1)");
  c->add_flag("--sort", o->sort, "Sort samples of --trace whose times fall");
  c->add_option("-o,--output", o->output, "Write the points as CSV");
  c->add_option("--json", o->json, "Write the numbers");
  c->add_option("--svg", o->svg, "Write a chart");
  c->add_option("--html", o->html, "Write a page with a chart");
  c->callback([o, &command, &action] {
    o->command = command;
    action = [o] { return profile(*o); };
  });
}

}  // namespace gpusim::host
