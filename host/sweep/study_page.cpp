#include "host/sweep/study_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "host/sweep/charts.h"
#include "host/sweep/machine.h"

namespace gpusim::sweep {
namespace {

constexpr size_t kMostDetailedTargets = 3;

std::vector<Curve> with_scaling(const Results& r, Scaling scaling) {
  std::vector<Curve> curves;
  for (const Curve& c : r.curves)
    if (c.one->scaling == scaling) curves.push_back(c);
  return curves;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

// "; its busiest core does 1.8 times the work of the average one", where that can be said.
std::string evenness(const Point& point) {
  const double i = imbalance(point);
  if (point.cores == 1 || i <= 0) return "";
  if (i < 1.05) return "; its cores share the work evenly";
  return fmt::format("; its busiest core does {} times the work of the average one",
                     i < 10 ? fmt::format("{:.2g}", i)
                            : grouped(static_cast<uint64_t>(std::llround(i))));
}

// Of many programs: the ends of the range.
std::string answer_of_many(const Results& r) {
  const Curve *best = nullptr, *worst = nullptr;
  const auto kept = [](const Curve& c) { return speed_up_of(c, c.rows.back())->efficiency; };
  for (const Curve& c : r.curves) {
    if (c.rows.size() < 2 || !speed_up_of(c, c.rows.back())) continue;
    if (!best || kept(c) > kept(*best)) best = &c;
    if (!worst || kept(c) < kept(*worst)) worst = &c;
  }
  if (!best || best == worst) return "";
  return fmt::format("{} keeps most of its efficiency, {:.1f} % at {} cores; {} least, {:.1f} % at "
                     "{}{}.",
                     best->label, 100 * kept(*best), grouped(best->rows.back().point.cores),
                     worst->label, 100 * kept(*worst), grouped(worst->rows.back().point.cores),
                     evenness(worst->rows.back().point));
}

// What the study was made for: how well each program uses the most cores.
std::string answer(const Results& r) {
  constexpr size_t kMost = 2;
  std::string text = r.curves.size() > kMost ? answer_of_many(r) : "";
  if (!text.empty()) return text;
  for (size_t i = 0; i < std::min(r.curves.size(), kMost); ++i) {
    const Curve& c = r.curves[i];
    const Row& last = c.rows.back();
    const std::string cores =
        fmt::format("{} core{}", grouped(last.point.cores), last.point.cores == 1 ? "" : "s");
    const SpeedUp* s = speed_up_of(c, last);
    if (s && c.rows.size() > 1)
      text += fmt::format("{} keeps {:.1f} % of its efficiency at {}", c.label,
                          100 * s->efficiency, cores);
    else
      text += fmt::format("{} ran on {}", c.label, cores);
    text += evenness(last.point) + ". ";
  }
  if (r.curves.size() > kMost)
    text += fmt::format("The table has {} more.", r.curves.size() - kMost);
  return text;
}

void add_overview(Page& page, const Results& r) {
  page.add_section("Overview");
  Json rows = Json::array();
  for (const Curve& c : r.curves) {
    const Row& last = c.rows.back();
    const SpeedUp* s = speed_up_of(c, last);
    rows.push_back({c.label, scaling_name(c.one->scaling), last.point.cores,
                    s ? rounded(s->efficiency, 4) : Json(nullptr),
                    s ? rounded(s->speed_up, 5) : Json(nullptr),
                    rounded(imbalance(last.point), 4),
                    c.serial ? rounded(c.serial->share, 4) : Json(nullptr),
                    c.serial ? rounded(c.serial->uncertainty, 2) : Json(nullptr),
                    last.point.instructions});
  }
  page.add_table(
      {{"title", "Programs, at their largest number of cores"},
       {"columns",
        {{{"name", "program"}},
         {{"name", "scaling"}},
         {{"name", "most cores"}, {"format", "count"}},
         {{"name", "efficiency"}, {"format", "percent"}},
         {{"name", "speed-up"}, {"format", "ratio"}},
         {{"name", "busiest core / mean"}, {"format", "ratio"}},
         {{"name", "serial share"}, {"format", "percent"}},
         {{"name", "±"}, {"format", "percent"}},
         {{"name", "instructions"}, {"format", "si"}}}},
       {"rows", std::move(rows)},
       {"note",
        "Speed-up and efficiency are those of the simulated program in simulated work, not of the "
        "simulator. Click a column's head to sort."}},
      "Programs");
  for (const Curve& c : r.curves)
    if (c.outputs_differ)
      page.add_text(fmt::format(
          "{}: what the program printed was not the same on all numbers of cores.", c.label));
  if (!r.failures.empty())
    page.add_text(fmt::format("{} point{} failed; they are listed at the end and in no chart.",
                              r.failures.size(), r.failures.size() == 1 ? "" : "s"));
}

void add_speed(Page& page, const Results& r) {
  page.add_section("Speed of the simulator itself");
  page.add_chart(lines_chart(
      r.curves, "Simulated instructions per second",
      {{"label", "guest instructions per second"}, {"scale", "log10"}, {"format", "si"}},
      [](const Curve&, const Row& row) -> std::optional<Reading> {
        if (row.mips <= 0) return std::nullopt;
        return Reading{row.mips * 1e6, row.mips_low * 1e6, row.mips_high * 1e6};
      },
      fmt::format("{} per point; loading and translation are not in it. Points with few "
                  "cores run several at once, each on as many host threads as it can use.",
                  r.stored.study.repeat > 1
                      ? fmt::format("Median, least and most of {} runs", r.stored.study.repeat)
                      : std::string("One run"))));
}

void add_scaling(Page& page, const Results& r, Scaling scaling) {
  const std::vector<Curve> curves = with_scaling(r, scaling);
  if (std::none_of(curves.begin(), curves.end(),
                   [](const Curve& c) { return c.speed_ups.size() > 1; }))
    return;
  const bool weak = scaling == Scaling::kWeak;
  const bool cycles = std::any_of(curves.begin(), curves.end(),
                                  [](const Curve& c) { return c.has_cycles; });
  const bool all_cycles = std::all_of(curves.begin(), curves.end(),
                                      [](const Curve& c) { return c.has_cycles; });
  const char* const length =
      all_cycles && any_chip(curves) ? "the cycles of the simulated chip"
      : all_cycles
          ? "the cycles of the simulated chip (a table of cycles per instruction class, one "
            "instruction at a time, barriers taking the slowest core; no caches or stalls)"
          : "the guest instructions of the busiest core: an honest measure of how work spreads, "
            "but not a time; waiting counts only as far as a core executes instructions while it "
            "waits";
  page.add_section(weak ? "Weak scaling" : "Strong scaling");
  page.add_text(fmt::format(
      "{} The length of a run is taken as {}{}. {}",
      weak ? "The work grows with the cores, so that each has the same."
           : "The work is the same on any number of cores.",
      length,
      cycles && !all_cycles ? " (of some programs: the simulated chip's cycles)" : "",
      weak ? "Speed-up is n W(1) / W(n)." : "Speed-up is W(1) / W(n)."));
  const auto reading = [](double SpeedUp::*member) {
    return [member](const Curve& c, const Row& row) -> std::optional<Reading> {
      const SpeedUp* s = speed_up_of(c, row);
      return s ? std::optional(Reading{s->*member, {}, {}}) : std::nullopt;
    };
  };
  page.add_chart(lines_chart(curves, "Parallel efficiency",
                             {{"label", "speed-up per core"}, {"format", "percent"}, {"min", 0}},
                             reading(&SpeedUp::efficiency)));
  Json chart = lines_chart(
      curves, weak ? "Scaled speed-up" : "Speed-up",
      {{"label", "speed-up"}, {"scale", "log10"}, {"format", "ratio"}}, reading(&SpeedUp::speed_up),
      "Grey: ideal. A curve that starts with more than one core is taken to have "
      "scaled perfectly up to there.");
  Json ideal = Json::array();
  std::vector<uint32_t> cores;
  for (const Curve& c : curves)
    for (const SpeedUp& s : c.speed_ups) cores.push_back(s.cores);
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  for (const uint32_t n : cores) ideal.push_back({n, n});
  chart["series"].push_back({{"name", "ideal"}, {"style", "reference"}, {"points", ideal}});
  page.add_chart(std::move(chart));
  Views fits;
  for (const Curve& c : curves)
    if (c.serial) fits.emplace_back(c.label, fit_chart(c));
  if (fits.empty())
    page.add_text("A serial share needs at least two points beside the one on a single core.");
  page.add_charts("program", std::move(fits));
  if (!weak)
    page.add_chart(lines_chart(
        curves, "Work of all cores together",
        {{"label", "instructions, relative to the fewest cores"},
         {"scale", "log10"},
         {"format", "ratio"}},
        [](const Curve& c, const Row& row) -> std::optional<Reading> {
          const uint64_t first = c.rows.front().point.instructions;
          if (first == 0) return std::nullopt;
          return Reading{
              static_cast<double>(row.point.instructions) / static_cast<double>(first), {}, {}};
        },
        "What parallel execution adds: start-up of each core, work done twice, looks at locks and "
        "barriers."));
}

void add_classes(Page& page, const Results& r) {
  page.add_section("Instruction classes");
  Views views;
  for (const Curve& c : r.curves) views.emplace_back(c.label, class_chart(r.curves, c));
  page.add_charts("program", std::move(views));
}

void add_load(Page& page, const Results& r) {
  page.add_section("Load balance");
  // The least balanced one first: that is where there is something to see.
  std::vector<const Curve*> order;
  for (const Curve& c : r.curves) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(), [](const Curve* a, const Curve* b) {
    return imbalance(a->rows.back().point) > imbalance(b->rows.back().point);
  });
  Views views;
  for (const Curve* c : order) views.emplace_back(c->label, load_chart(*c));
  page.add_charts("program", std::move(views));
  page.add_chart(lines_chart(
      r.curves, "Imbalance",
      {{"label", "instructions of the busiest core / mean"},
       {"scale", "log10"},
       {"format", "ratio"}},
      [](const Curve&, const Row& row) -> std::optional<Reading> {
        const double i = imbalance(row.point);
        return i > 0 ? std::optional(Reading{i, {}, {}}) : std::nullopt;
      },
      "1: all cores execute as many instructions. n: one core of n does all."));
}

void add_losses(Page& page, const Results& r) {
  page.add_section("Lost to divergence and to waiting");
  const auto share = [](std::optional<double> Lanes::*which) {
    return [which](const Curve&, const Row& row) -> std::optional<Reading> {
      const std::optional<double>& v = row.point.lanes.*which;
      return v ? std::optional(Reading{*v, {}, {}}) : std::nullopt;
    };
  };
  const Json axis = {{"label", "share of all lanes' steps"}, {"format", "percent"}, {"min", 0}};
  const Read diverged = share(&Lanes::diverged_share), waiting = share(&Lanes::waiting_share);
  if (any_value(r.curves, diverged))
    page.add_chart(
        lines_chart(r.curves, "Lost to divergence", axis, diverged,
                    "Cores of a group that run different parts of the program take turns: "
                    "this share of the lanes could have worked and did not."));
  else
    page.add_text("These statistics say nothing about divergence (key \"divergence\" is absent).");
  if (any_value(r.curves, waiting))
    page.add_chart(lines_chart(r.curves, "Lost to waiting", axis, waiting,
                               "Looks in vain at locks and barriers, and cores asleep."));
  else
    page.add_text("These statistics say nothing about waiting (key \"waiting\" is absent).");
}

Json parts_table(const Curve& c, const std::vector<energy::Target>& targets, const char* what,
                 const std::vector<energy::PartEnergy> energy::Estimate::*member) {
  const Row& row = c.rows.back();
  const size_t count = std::min(targets.size(), kMostDetailedTargets);
  Json columns = {{{"name", what}, {"format", "wide"}},
                  {{"name", "instructions"}, {"format", "count"}}};
  for (size_t t = 0; t < count; ++t) {
    columns.push_back({{"name", targets[t].name}, {"format", "si"}, {"unit", "J"}});
    columns.push_back({{"name", "share"}, {"format", "percent"}});
  }
  Json rows = Json::array();
  // Estimates are sorted by energy, each on its own: by the first target here.
  for (const energy::PartEnergy& part : row.energy[0].*member) {
    Json cells = {part.name.empty() ? "(not known)" : part.name, part.instructions};
    for (size_t t = 0; t < count; ++t) {
      const auto& list = row.energy[t].*member;
      const auto same = std::find_if(list.begin(), list.end(), [&](const auto& p) {
        return p.name == part.name && p.instructions == part.instructions;
      });
      const double joules = same == list.end() ? 0 : same->energy.value.value();
      const double whole = row.energy[t].dynamic.value.value();
      cells.push_back(rounded(joules, 4));
      cells.push_back(whole > 0 ? rounded(joules / whole, 3) : Json(nullptr));
    }
    rows.push_back(std::move(cells));
    if (rows.size() == 25) break;
  }
  return {{"title",
           fmt::format("Dynamic energy by {}, {} on {} cores", what, c.label,
                       grouped(row.point.cores))},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)}};
}

void add_energy(Page& page, const Results& r) {
  if (r.targets.empty()) return;
  page.add_section("Energy");
  std::vector<std::string> names;
  for (const energy::Target& t : r.targets) names.push_back(t.name);
  page.add_text(fmt::format(
      "The same counts of instructions, on {}. Dynamic energy is a count times the energy of an "
      "instruction, per class; bars on points are the bounds that the target's source gives.",
      list_of(names)));
  const auto of_targets = [&](const std::string& title, bool needs_time, Json axis, auto value) {
    Views views;
    for (size_t t = 0; t < r.targets.size(); ++t) {
      const Read read = [t, &value](const Curve&, const Row& row) -> std::optional<Reading> {
        if (row.energy.size() <= t) return std::nullopt;
        return value(row.energy[t]);
      };
      if (!any_value(r.curves, read)) continue;
      std::string note = r.targets[t].uncertainty;
      if (needs_time && r.targets[t].timing && r.targets[t].timing->is_assumed)
        note += ". The time rests on assumed cycles per instruction";
      views.emplace_back(r.targets[t].name, lines_chart(r.curves, title + ", " + r.targets[t].name,
                                                        axis, read, note));
    }
    page.add_charts("target", std::move(views));
  };
  of_targets(
      "Dynamic energy", false,
      {{"label", "energy"}, {"scale", "log10"}, {"format", "si"}, {"unit", "J"}},
      [](const energy::Estimate& e) -> std::optional<Reading> {
        return Reading{e.dynamic.value.value(), e.dynamic.low.value(), e.dynamic.high.value()};
      });
  of_targets("Dynamic power", true,
             {{"label", "power above idle"}, {"scale", "log10"}, {"format", "si"}, {"unit", "W"}},
             [](const energy::Estimate& e) -> std::optional<Reading> {
               if (!e.dynamic_power) return std::nullopt;
               return Reading{e.dynamic_power->value(), {}, {}};
             });
  of_targets("Energy with idle power", true,
             {{"label", "dynamic energy + idle power × time"},
              {"scale", "log10"},
              {"format", "si"},
              {"unit", "J"}},
             [](const energy::Estimate& e) -> std::optional<Reading> {
               if (!e.idle_energy) return std::nullopt;
               return Reading{e.dynamic.value.value() + e.idle_energy->value(), {}, {}};
             });
  Json rows = Json::array();
  for (const Curve& c : r.curves) {
    const Row& row = c.rows.back();
    for (const energy::Estimate& e : row.energy)
      rows.push_back({c.label, row.point.cores,
                      e.target->name + (e.time_is_assumed() ? " *" : ""), rounded(e.dynamic.value.value(), 4),
                      rounded(e.dynamic.low.value(), 4), rounded(e.dynamic.high.value(), 4),
                      e.time ? rounded(e.time->value(), 4) : Json(nullptr),
                      e.dynamic_power ? rounded(e.dynamic_power->value(), 4) : Json(nullptr),
                      e.idle_power ? rounded(e.idle_power->value(), 4) : Json(nullptr),
                      row.point.active_cores, row.point.cores - row.point.active_cores,
                      rounded(e.dynamic.value.value() / std::max(1u, row.point.active_cores), 4)});
  }
  page.add_table({{"title", "Energy and power at the largest number of cores"},
                  {"columns",
                   {{{"name", "program"}},
                    {{"name", "cores"}, {"format", "count"}},
                    {{"name", "target"}},
                    {{"name", "dynamic"}, {"format", "si"}, {"unit", "J"}},
                    {{"name", "from"}, {"format", "si"}, {"unit", "J"}},
                    {{"name", "to"}, {"format", "si"}, {"unit", "J"}},
                    {{"name", "time"}, {"format", "si"}, {"unit", "s"}},
                    {{"name", "dynamic power"}, {"format", "si"}, {"unit", "W"}},
                    {{"name", "idle power"}, {"format", "si"}, {"unit", "W"}},
                    {{"name", "active cores"}, {"format", "count"}},
                    {{"name", "idle cores"}, {"format", "count"}},
                    {{"name", "dynamic per active core"}, {"format", "si"}, {"unit", "J"}}}},
                  {"rows", std::move(rows)},
                  {"note",
                   "Times are lower bounds: no stalls, and the longest core. A target without "
                   "timing has neither time nor power. * from assumed cycles per instruction."}},
                 "Energy");
  Views classes, chip, functions, lines;
  for (const Curve& c : r.curves) {
    if (c.rows.back().energy.empty()) continue;
    for (size_t t = 0; t < std::min(r.targets.size(), kMostDetailedTargets); ++t)
      classes.emplace_back(r.targets.size() == 1 ? c.label : c.label + " on " + r.targets[t].name,
                           class_energy_chart(r.curves, c, t));
    chip.emplace_back(c.label, core_energy_chart(c, r.targets[0]));
    functions.emplace_back(c.label,
                           parts_table(c, r.targets, "function", &energy::Estimate::functions));
    if (!c.rows.back().point.lines.empty())
      lines.emplace_back(c.label, parts_table(c, r.targets, "line", &energy::Estimate::lines));
  }
  page.add_charts("program", std::move(classes));
  page.add_tables("program", "Functions", std::move(functions));
  page.add_tables("program", "Lines", std::move(lines));
  page.add_charts("program", std::move(chip));
  page.add_chart(lines_chart(
      r.curves, "Cores that worked",
      {{"label", "share of cores that executed anything"},
       {"format", "percent"},
       {"min", 0},
       {"max", 1.05}},
      [](const Curve&, const Row& row) -> std::optional<Reading> {
        return Reading{static_cast<double>(row.point.active_cores) / row.point.cores, {}, {}};
      },
      "The others were idle from beginning to end: they take idle power only."));
}

std::string command_text(const Point& p) {
  std::string text = "gpusim";
  for (const std::string& word : p.command) text += " " + quoted(word);
  return text;
}

void add_repeat(Page& page, const Results& r) {
  const StoredStudy& s = r.stored;
  page.add_section("How to repeat this");
  const Json& m = s.machine;
  std::string others;
  for (const OtherMachine& other : other_machines(s)) {
    const auto& o = other.machine;
    others += fmt::format("and on      {}, memory {:.1f} GiB, {}: {} of {} points\n",
                          o.value("processor", "?"),
                          static_cast<double>(o.value("memory_bytes", uint64_t{0})) / (1u << 30),
                          o.value("system", "?"), other.points, s.points.size());
  }
  page.add_code(
      fmt::format("gpusim      {} (sha256 of the program {:.16})\nprocessor   {}\nthreads     {} "
                  "of the host, memory "
                  "{:.1f} GiB\nsystem      {}\nbegun       {}\n",
                  s.simulator.value("version", "?"), s.simulator.value("sha256", "?"),
                  m.value("processor", "?"), m.value("host_threads", 0),
                  static_cast<double>(m.value("memory_bytes", uint64_t{0})) / (1u << 30),
                  m.value("system", "?"), s.begun) +
      others);
  std::string programs;
  for (const Case& c : s.study.cases)
    programs += fmt::format("{:<24} {}  sha256 {:.16}\n", c.label, c.program, c.program_sha256);
  page.add_code(programs, "Programs and their checksums");
  std::string commands;
  for (const Point& p : s.points) commands += command_text(p) + "\n";
  page.add_code(commands, fmt::format("The {} commands", s.points.size()));
  Json rows = Json::array();
  for (const Point& p : s.points)
    rows.push_back({p.label, p.backend_asked, p.cores, p.repeat, p.status, p.threads,
                    p.ok() ? Json(p.instructions) : Json(nullptr),
                    p.ok() ? rounded(p.mips * 1e6, 4) : Json(nullptr), rounded(p.wall_seconds, 4),
                    rounded(p.cpu_seconds, 4), p.max_rss_bytes, rounded(p.load, 3), p.others,
                    p.message});
  page.add_table({{"title", "All points"},
                  {"columns",
                   {{{"name", "program"}},
                    {{"name", "backend"}},
                    {{"name", "cores"}, {"format", "count"}},
                    {{"name", "run"}, {"format", "count"}},
                    {{"name", "status"}},
                    {{"name", "threads"}, {"format", "count"}},
                    {{"name", "instructions"}, {"format", "count"}},
                    {{"name", "instr./s"}, {"format", "si"}},
                    {{"name", "elapsed"}, {"format", "si"}, {"unit", "s"}},
                    {{"name", "processor time"}, {"format", "si"}, {"unit", "s"}},
                    {{"name", "memory"}, {"format", "si"}, {"unit", "B"}},
                    {{"name", "host load"}, {"format", "number"}},
                    {{"name", "others beside it"}, {"format", "count"}},
                    {{"name", "message"}, {"format", "wide"}}}},
                  {"rows", std::move(rows)}},
                 "All points", fmt::format("All {} points", s.points.size()));
  if (r.failures.empty()) return;
  Json failed = Json::array();
  for (const Point& p : r.failures)
    failed.push_back({p.label, p.backend_asked, p.cores, p.status, p.exit_status, p.message});
  page.add_table({{"title", "Points that failed"},
                  {"columns",
                   {{{"name", "program"}},
                    {{"name", "backend"}},
                    {{"name", "cores"}, {"format", "count"}},
                    {{"name", "how"}},
                    {{"name", "exit status"}, {"format", "count"}},
                    {{"name", "message"}, {"format", "wide"}}}},
                  {"rows", std::move(failed)}},
                 "Failures");
}

}  // namespace

Page study_page(const Results& r) {
  Page page(r.stored.study.title);
  const std::string devices = r.curves.empty() ? "" : r.curves[0].rows[0].point.device;
  page.set_subtitle(fmt::format(
      "{} point{} of {} program{} on simulated cores; gpusim {}, {}{}", r.stored.points.size(),
      r.stored.points.size() == 1 ? "" : "s", r.stored.study.cases.size(),
      r.stored.study.cases.size() == 1 ? "" : "s", r.stored.simulator.value("version", "?"),
      devices.empty() ? "" : devices + ", ", r.stored.begun.substr(0, 10)));
  if (!r.curves.empty()) {
    page.set_answer(answer(r));
    add_overview(page, r);
    if (any_chip(r.curves)) add_chips(page, r);
    add_scaling(page, r, Scaling::kStrong);
    add_scaling(page, r, Scaling::kWeak);
    add_classes(page, r);
    add_load(page, r);
    add_losses(page, r);
    add_energy(page, r);
  } else {
    page.add_section("Overview");
    page.add_text("No point ran to its end.");
  }
  add_repeat(page, r);
  if (!r.curves.empty()) add_speed(page, r);
  return page;
}

}  // namespace gpusim::sweep
