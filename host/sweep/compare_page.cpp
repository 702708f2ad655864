#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "energy/report.h"
#include "host/sweep/charts.h"
#include "host/sweep/study_page.h"

namespace gpusim::sweep {
namespace {

struct Pair {
  const Curve* first;
  const Curve* second;
};

// Curves of the same program; of the same backend where each has several.
std::vector<Pair> pairs_of(const Results& a, const Results& b) {
  std::vector<Pair> pairs;
  for (const Curve& x : a.curves)
    for (const Curve& y : b.curves)
      if (x.label == y.label) pairs.push_back({&x, &y});
  return pairs;
}

const Row* row_at(const Curve& curve, uint32_t cores) {
  for (const Row& row : curve.rows)
    if (row.point.cores == cores) return &row;
  return nullptr;
}

using Value = std::function<std::optional<double>(const Curve&, const Row&)>;

std::optional<double> mips(const Curve&, const Row& row) {
  return row.mips > 0 ? std::optional(row.mips * 1e6) : std::nullopt;
}
std::optional<double> instructions(const Curve&, const Row& row) {
  return row.point.instructions ? std::optional(static_cast<double>(row.point.instructions))
                                : std::nullopt;
}
std::optional<double> work(const Curve& c, const Row& row) {
  const double w = c.has_cycles ? row.point.cycles() : static_cast<double>(row.point.busiest);
  return w > 0 ? std::optional(w) : std::nullopt;
}
std::optional<double> speed_up(const Curve& c, const Row& row) {
  const SpeedUp* s = speed_up_of(c, row);
  return s ? std::optional(s->speed_up) : std::nullopt;
}

Json points_of(const Curve& curve, const Value& value) {
  Json points = Json::array();
  for (const Row& row : curve.rows)
    if (const auto v = value(curve, row)) points.push_back({row.point.cores, rounded(*v)});
  return points;
}

// All programs at once: what the second study has, as a multiple of the first.
Json ratio_chart(const std::vector<Pair>& pairs, const std::string& title, const std::string& label,
                 const Value& value) {
  Json series = Json::array();
  std::vector<uint32_t> cores;
  for (size_t i = 0; i < pairs.size(); ++i) {
    Json points = Json::array();
    for (const Row& row : pairs[i].first->rows) {
      const Row* other = row_at(*pairs[i].second, row.point.cores);
      if (!other) continue;
      const auto x = value(*pairs[i].first, row), y = value(*pairs[i].second, *other);
      if (!x || !y) continue;
      points.push_back({row.point.cores, rounded(*y / *x)});
      cores.push_back(row.point.cores);
    }
    if (!points.empty())
      series.push_back(
          {{"name", pairs[i].first->label}, {"colour", i}, {"points", std::move(points)}});
  }
  if (cores.empty()) return nullptr;
  const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
  series.push_back(
      {{"name", "equal"}, {"style", "reference"}, {"points", {{*least, 1}, {*most, 1}}}});
  return {{"kind", "lines"},
          {"title", title},
          {"x", cores_axis()},
          {"y", {{"label", label}, {"format", "ratio"}}},
          {"series", std::move(series)}};
}

// One program at a time: both curves.
void add_overlays(Page& page, const std::vector<Pair>& pairs, const std::string& a,
                  const std::string& b, const std::string& title, const Json& axis,
                  const Value& value) {
  Views views;
  for (const Pair& p : pairs) {
    Json x = points_of(*p.first, value), y = points_of(*p.second, value);
    if (x.empty() && y.empty()) continue;
    views.emplace_back(
        p.first->label,
        Json{{"kind", "lines"},
             {"title", fmt::format("{}, {}", title, p.first->label)},
             {"x", cores_axis()},
             {"y", axis},
             {"series",
              {{{"name", a}, {"colour", 0}, {"points", std::move(x)}},
               {{"name", b}, {"colour", 1}, {"style", "dashed"}, {"points", std::move(y)}}}}});
  }
  page.add_charts("program", std::move(views));
}

Json table_of(const std::vector<Pair>& pairs, const std::string& a, const std::string& b) {
  Json rows = Json::array();
  for (const Pair& p : pairs)
    for (const Row& row : p.first->rows) {
      const Row* other = row_at(*p.second, row.point.cores);
      if (!other) continue;
      const auto ratio = [](double y, double x) {
        return x > 0 ? rounded(y / x, 4) : Json(nullptr);
      };
      rows.push_back({p.first->label, row.point.cores, rounded(row.mips * 1e6, 4),
                      rounded(other->mips * 1e6, 4), ratio(other->mips, row.mips),
                      row.point.instructions, other->point.instructions,
                      ratio(static_cast<double>(other->point.instructions),
                            static_cast<double>(row.point.instructions))});
    }
  return {{"title", "Points that both studies have"},
          {"columns",
           {{{"name", "program"}},
            {{"name", "cores"}, {"format", "count"}},
            {{"name", a + ", instr./s"}, {"format", "si"}},
            {{"name", b + ", instr./s"}, {"format", "si"}},
            {{"name", "ratio"}, {"format", "ratio"}},
            {{"name", a + ", instructions"}, {"format", "count"}},
            {{"name", b + ", instructions"}, {"format", "count"}},
            {{"name", "ratio"}, {"format", "ratio"}}}},
          {"rows", std::move(rows)}};
}

// Of one program, where two studies differ most.
struct Change {
  const Curve* curve;
  const char* what;
  uint32_t cores;
  double first, second;
  bool is_energy = false;
  std::string target;
  double share() const { return second / first - 1; }
};

// What does not depend on the host: differences there are the program's or the simulator's doing.
std::vector<Change> changes_of(const std::vector<Pair>& pairs, const Results& first,
                               const Results& second) {
  std::vector<Change> changes;
  const auto look = [&](const Pair& p, Change base, const Value& of_first, const Value& of_second) {
    std::optional<Change> most;
    for (const Row& row : p.first->rows) {
      const Row* other = row_at(*p.second, row.point.cores);
      if (!other) continue;
      const auto x = of_first(*p.first, row), y = of_second(*p.second, *other);
      if (!x || !y || *x <= 0 || std::abs(*y / *x - 1) < 1e-9) continue;
      base.cores = row.point.cores;
      base.first = *x;
      base.second = *y;
      if (!most || std::abs(base.share()) > std::abs(most->share())) most = base;
    }
    if (most) changes.push_back(*most);
  };
  for (const Pair& p : pairs) {
    const bool cycles = p.first->has_cycles && p.second->has_cycles;
    const Change base{p.first, "", 0, 0, 0, false, {}};
    Change one = base;
    one.what = cycles ? "simulated cycles" : "instructions of the busiest core";
    look(p, one, work, work);
    one.what = "instructions of all cores";
    look(p, one, instructions, instructions);
    for (size_t t = 0; t < first.targets.size(); ++t)
      for (size_t u = 0; u < second.targets.size(); ++u) {
        if (first.targets[t].name != second.targets[u].name) continue;
        const auto energy_of = [](size_t i) {
          return [i](const Curve&, const Row& row) -> std::optional<double> {
            if (row.energy.size() <= i) return std::nullopt;
            return row.energy[i].dynamic.value.value();
          };
        };
        one = base;
        one.what = "dynamic energy";
        one.is_energy = true;
        one.target = first.targets[t].name;
        look(p, one, energy_of(t), energy_of(u));
      }
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) {
    return std::abs(x.share()) > std::abs(y.share());
  });
  return changes;
}

std::string value_text(const Change& c, double value) {
  return c.is_energy ? energy::pretty(energy::Joules(value))
                     : grouped(static_cast<uint64_t>(std::llround(value)));
}

std::string answer(const std::vector<Change>& changes, size_t programs, const std::string& a,
                   const std::string& b) {
  if (changes.empty())
    return fmt::format(
        "Nothing changed: {} program{} of {} execute{} the same instructions in {}, "
        "core by core alike. Only the simulator's own speed may differ.",
        programs, programs == 1 ? "" : "s", b, programs == 1 ? "s" : "", a);
  const Change& most = changes.front();
  return fmt::format("{}{}: {:+.3g} % {} on {} core{} in {}, the greatest change.",
                     most.curve->label, most.target.empty() ? "" : " on " + most.target,
                     100 * most.share(), most.what, grouped(most.cores), most.cores == 1 ? "" : "s",
                     b);
}

void add_changes(Page& page, const std::vector<Change>& changes, const std::string& a,
                 const std::string& b) {
  page.add_section("What changed");
  if (changes.empty()) {
    page.add_text("Of what does not depend on the host: nothing.");
    return;
  }
  Json rows = Json::array();
  for (const Change& c : changes)
    rows.push_back({c.curve->label, c.target.empty() ? c.what : c.what + (", " + c.target), c.cores,
                    value_text(c, c.first), value_text(c, c.second), rounded(c.share(), 4)});
  page.add_table({{"title", "Greatest change of each quantity"},
                  {"note",
                   "Of what does not depend on the host's speed, at the number of cores "
                   "where the studies differ most."},
                  {"columns",
                   {{{"name", "program"}},
                    {{"name", "what"}, {"format", "wide"}},
                    {{"name", "cores"}, {"format", "count"}},
                    {{"name", a}},
                    {{"name", b}},
                    {{"name", "change"}, {"format", "change"}}}},
                  {"rows", std::move(rows)}},
                 "What changed");
}

std::string origin(const StoredStudy& s, const std::string& name) {
  std::string text = fmt::format(
      "{}: {}\n  gpusim {} (sha256 of the program {:.16}), {}, {} host threads, begun {}\n", name,
      s.study.title, s.simulator.value("version", "?"), s.simulator.value("sha256", "?"),
      s.machine.value("processor", "?"), s.machine.value("host_threads", 0), s.begun);
  for (const Case& c : s.study.cases)
    text += fmt::format("  {:<24} {}  sha256 {:.16}\n", c.label, c.program, c.program_sha256);
  return text;
}

}  // namespace

Page compare_page(const Results& first, const std::string& a, const Results& second,
                  const std::string& b) {
  const std::vector<Pair> pairs = pairs_of(first, second);
  Page page(fmt::format("{} beside {}", b, a));
  page.set_subtitle(fmt::format("{} program{} that both studies have", pairs.size(),
                                pairs.size() == 1 ? "" : "s"));
  const std::vector<Change> changes = changes_of(pairs, first, second);
  page.set_answer(answer(changes, pairs.size(), a, b));
  add_changes(page, changes, a, b);
  page.add_section("Ratios");
  page.add_text(fmt::format("What {} has, as a multiple of {}.", b, a));
  for (Json chart :
       {ratio_chart(pairs, "Work of the busiest core", "work, ratio", work),
        ratio_chart(pairs, "Work of all cores", "guest instructions, ratio", instructions)})
    if (!chart.is_null()) page.add_chart(std::move(chart));
  page.add_section("Curves");
  add_overlays(page, pairs, a, b, "Speed-up",
               {{"label", "speed-up"}, {"scale", "log10"}, {"format", "ratio"}}, speed_up);
  for (size_t t = 0; t < first.targets.size(); ++t)
    for (size_t u = 0; u < second.targets.size(); ++u) {
      if (first.targets[t].name != second.targets[u].name) continue;
      const auto joules = [&, t, u](const Curve& c, const Row& row) -> std::optional<double> {
        const bool is_first =
            &c >= first.curves.data() && &c < first.curves.data() + first.curves.size();
        const size_t i = is_first ? t : u;
        if (row.energy.size() <= i) return std::nullopt;
        return row.energy[i].dynamic.value.value();
      };
      add_overlays(page, pairs, a, b, "Dynamic energy on " + first.targets[t].name,
                   {{"label", "energy"}, {"scale", "log10"}, {"format", "si"}, {"unit", "J"}},
                   joules);
    }
  page.add_section("Points");
  page.add_table(table_of(pairs, a, b), "Points");
  page.add_section("Where they come from");
  page.add_code(origin(first.stored, a) + "\n" + origin(second.stored, b));
  page.add_section("Speed of the simulator itself");
  if (Json chart =
          ratio_chart(pairs, "Speed of the simulation", "instructions per second, ratio", mips);
      !chart.is_null())
    page.add_chart(std::move(chart));
  add_overlays(page, pairs, a, b, "Simulated instructions per second",
               {{"label", "guest instructions per second"}, {"scale", "log10"}, {"format", "si"}},
               mips);
  return page;
}

std::string compare_csv(const Results& first, const Results& second) {
  std::string text =
      "program,cores,mips_a,mips_b,guest_instructions_a,guest_instructions_b,work_a,work_b\n";
  for (const Pair& p : pairs_of(first, second))
    for (const Row& row : p.first->rows) {
      const Row* other = row_at(*p.second, row.point.cores);
      if (!other) continue;
      std::string label = p.first->label;
      if (label.find_first_of(",\"") != std::string::npos) {
        for (size_t at = 0; (at = label.find('"', at)) != std::string::npos; at += 2)
          label.insert(at, 1, '"');
        label = "\"" + label + "\"";
      }
      text += fmt::format("{},{},{:.6g},{:.6g},{},{},{:.9g},{:.9g}\n", label, row.point.cores,
                          row.mips, other->mips, row.point.instructions, other->point.instructions,
                          work(*p.first, row).value_or(0), work(*p.second, *other).value_or(0));
    }
  return text;
}

}  // namespace gpusim::sweep
