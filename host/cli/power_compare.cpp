// `gpusim power compare`: all methods on one recording.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "device_sim/base/page.h"
#include "energy/power/attach/session.h"
#include "energy/power/compare_report.h"
#include "host/cli/power_commands.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace pw = gpusim::power;
using Json = nlohmann::ordered_json;

struct Options {
  std::string trace, reference, truth, profile, json, html;
  double idle = -1;
  bool each = false, sort = false;
};

// A recording of a better meter: straight lines between its samples.
pw::Curve reference_curve(const std::string& path) {
  const pw::Trace trace = pw::read_trace(path);
  std::vector<pw::Knot> knots;
  for (const pw::Sample& s : trace.samples) knots.push_back({s.time, s.power});
  if (knots.empty()) throw Error(fmt::format("--reference {}: it has no samples", path));
  return pw::Curve(knots);
}

std::string html_of(const Options& o, const pw::Trace& trace, const pw::Comparison& comparison,
                    const pw::Curve* truth) {
  page::Page html("Energy by method: " + o.trace);
  const std::vector<pw::NamedEnergies> names = pw::by_name(comparison);
  const bool has_truth =
      std::any_of(names.begin(), names.end(), [](const auto& n) { return n.truth.has_value(); });
  html.add_section("Energy");
  Json table = {{"columns", Json::array()}, {"rows", Json::array()}};
  const auto column = [&](const std::string& name) {
    table["columns"].push_back({{"name", name}, {"format", "number"}});
  };
  for (const char* name : {"name", "count", "seconds"}) column(name);
  if (has_truth) column("true J");
  for (int m = 0; m < pw::kMethodCount; ++m)
    column(fmt::format("{} J", pw::title(static_cast<pw::Method>(m))));
  const auto cell = [](const std::optional<pw::Joules>& j) {
    return j ? page::rounded(j->value()) : Json(nullptr);
  };
  std::vector<std::pair<std::string, Json>> charts;
  for (const pw::NamedEnergies& n : names) {
    Json row = Json::array({n.name, n.count, page::rounded(n.duration.value())});
    Json categories = Json::array(), values = Json::array();
    if (has_truth) {
      row.push_back(cell(n.truth));
      categories.push_back("true");
      values.push_back(cell(n.truth));
    }
    for (size_t m = 0; m < pw::kMethodCount; ++m) {
      row.push_back(cell(n.by_method[m]));
      if (!n.by_method[m]) continue;
      categories.push_back(pw::title(static_cast<pw::Method>(m)));
      values.push_back(cell(n.by_method[m]));
    }
    table["rows"].push_back(row);
    charts.emplace_back(
        n.name, Json{{"kind", "bars"},
                     {"title", "Energy of " + n.name},
                     {"categories", categories},
                     {"y", {{"label", "J"}, {"format", "number"}}},
                     {"series", Json::array({Json{{"name", "energy"}, {"values", values}}})}});
  }
  html.add_table(table, "energy");
  // A page with more choices than that helps nobody; the table has all of them.
  if (charts.size() > 50) charts.resize(50);
  if (!charts.empty()) html.add_charts("name", charts);
  html.add_section("Power");
  // Some thousand points are what a screen shows.
  const size_t step = std::max<size_t>(1, trace.samples.size() / 4000);
  const pw::Seconds zero = trace.samples.front().time;
  Json points = Json::array(), truly = Json::array();
  const auto point = [&](pw::Seconds time, pw::Watts power) {
    return Json::array({page::rounded((time - zero).value(), 9), page::rounded(power.value())});
  };
  for (size_t i = 0; i < trace.samples.size(); i += step)
    points.push_back(point(trace.samples[i].time, trace.samples[i].power));
  Json lines = {{"kind", "lines"},
                {"title", "Readings"},
                {"x", {{"label", "s"}, {"format", "number"}}},
                {"y", {{"label", "W"}, {"format", "number"}}},
                {"series", Json::array()}};
  lines["series"].push_back({{"name", "read"}, {"points", points}, {"marks", false}});
  if (truth != nullptr) {
    for (const pw::Knot& k : truth->knots())
      if (k.time >= zero && k.time <= trace.samples.back().time && truly.size() < 8000)
        truly.push_back(point(k.time, k.power));
    lines["series"].push_back({{"name", "reference"}, {"points", truly}, {"style", "reference"}});
  }
  html.add_chart(lines);
  html.add_section("Methods");
  Json about = {{"columns", Json::array({Json{{"name", "method"}}, Json{{"name", "what it is"}}})},
                {"rows", Json::array()}};
  for (int m = 0; m < pw::kMethodCount; ++m)
    about["rows"].push_back(Json::array(
        {pw::title(static_cast<pw::Method>(m)), pw::about(static_cast<pw::Method>(m))}));
  html.add_table(about, "methods");
  return html.html();
}

int run(const Options& o) {
  if (!o.json.empty()) check_output_file("--json", o.json);
  if (!o.html.empty()) check_output_file("--html", o.html);
  if (!o.reference.empty() && !o.truth.empty())
    throw Error("--reference and --truth exclude each other");
  const pw::Trace trace =
      pw::read_trace(o.trace, o.sort ? pw::TimeOrder::kSort : pw::TimeOrder::kRefuse);
  if (trace.samples.empty()) throw Error(fmt::format("{}: it has no samples", o.trace));
  std::vector<pw::Interval> intervals = trace.intervals;
  if (intervals.empty())
    intervals.push_back({"whole recording", trace.samples.front().time, trace.samples.back().time});
  pw::MethodOptions options;
  if (!o.profile.empty()) {
    options.profile = pw::find_sensor_profile(o.profile);
    options.has_profile = true;
    options.active_idle = options.profile.active_idle;
  }
  if (o.idle >= 0) options.active_idle = pw::Watts(o.idle);
  std::optional<pw::Curve> truth;
  if (!o.reference.empty()) truth = reference_curve(o.reference);
  if (!o.truth.empty()) truth = pw::attach::read_truth(o.truth);
  const pw::Comparison comparison =
      pw::compare_methods(trace, intervals, options, truth ? &*truth : nullptr);
  if (o.each) console::out("{}\n", pw::interval_table(comparison));
  console::out("{}", pw::comparison_table(comparison));
  for (const std::string& note : trace.notes) console::out("note: {}\n", note);
  if (!o.json.empty()) write_output_file("--json", o.json, pw::comparison_json(comparison));
  if (!o.html.empty())
    write_output_file("--html", o.html, html_of(o, trace, comparison, truth ? &*truth : nullptr));
  return 0;
}

}  // namespace

void add_power_compare(CLI::App& power, Action& action) {
  CLI::App* c =
      power.add_subcommand("compare", "What the methods say of the energy in one recording");
  auto o = std::make_shared<Options>();
  c->add_option("TRACE", o->trace,
                "A recording (CSV), with intervals as attach and record write them")
      ->required();
  c->add_option("--reference", o->reference, "A better meter's recording on the same clock");
  c->add_option("--truth", o->truth, "What a simulated GPU drew (lines BEGIN END WATTS NAME)");
  c->add_option("--profile", o->profile,
                "The sensor's profile, for corrected energies (a file; k20)");
  c->add_option("--idle", o->idle, "Watts of the active idle level (from the profile, or found)");
  c->add_flag("--sort", o->sort, "Sort samples whose times fall");
  c->add_flag("--each", o->each, "A line for each interval, too");
  c->add_option("--json", o->json, "Write all figures");
  c->add_option("--html", o->html, "Write a page with table and charts");
  c->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace gpusim::host
