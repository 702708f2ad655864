// What chips did in a study: cycles and energy over keys of their descriptions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "host/sweep/charts.h"
#include "host/sweep/chips.h"

namespace gpusim::sweep {
namespace {

const ChipRun* chip_at(const Curve& curve, uint32_t cores) {
  for (const Row& row : curve.rows)
    if (row.point.cores == cores && row.point.chip) return &*row.point.chip;
  return nullptr;
}

std::vector<uint32_t> cores_of(const Results& r) {
  std::vector<uint32_t> cores;
  for (const Curve& curve : r.curves)
    for (const Row& row : curve.rows) cores.push_back(row.point.cores);
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::string on_cores(uint32_t cores) {
  return fmt::format("{} core{}", grouped(cores), cores == 1 ? "" : "s");
}

// All that tells a curve from others but the value of one key: what a line over that key is called.
std::string name_without(const Results& r, const Curve& curve, size_t key) {
  const Study& study = r.stored.study;
  std::string name = family_of(*curve.one);
  const std::string& chip = curve.one->chip;
  if (study.chips.size() > 1) {
    const size_t end = std::min(chip.find("," + study.vary.front().key + "="), chip.size());
    name += "/" + chip.substr(0, end);
  }
  for (size_t k = 0; k < study.vary.size(); ++k)
    if (k != key)
      name += fmt::format("{}{}={}", name.find('/') == std::string::npos ? "/" : ",",
                          study.vary[k].key, curve.one->chip_values[k]);
  if (study.backends.size() > 1) name += fmt::format(" ({})", curve.backend);
  return name;
}

using ChipRead = double (*)(const ChipRun&);

// Over the values of a key that are numbers; nothing if some are not.
std::optional<Json> key_chart(const Results& r, size_t key, uint32_t cores,
                              const std::string& title, Json y_axis, ChipRead read,
                              const std::string& note) {
  const VariedKey& varied = r.stored.study.vary[key];
  if (varied.values.size() < 2) return std::nullopt;
  bool is_size = false;
  double least = INFINITY, most = 0;
  for (const std::string& value : varied.values) {
    const auto number = number_of(value);
    if (!number) return std::nullopt;
    is_size |= number->is_size;
    least = std::min(least, number->value);
    most = std::max(most, number->value);
  }
  std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>> lines;
  double lowest = INFINITY, highest = 0;
  for (const Curve& curve : r.curves) {
    const ChipRun* chip = chip_at(curve, cores);
    if (!chip || key >= curve.one->chip_values.size()) continue;
    const double y = read(*chip);
    if (y <= 0) continue;
    const std::string name = name_without(r, curve, key);
    auto it =
        std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == name; });
    if (it == lines.end()) it = lines.insert(lines.end(), {name, {}});
    it->second.emplace_back(number_of(curve.one->chip_values[key])->value / (is_size ? 1024 : 1),
                            y);
    lowest = std::min(lowest, y);
    highest = std::max(highest, y);
  }
  if (lines.empty()) return std::nullopt;
  Json series = Json::array();
  for (auto& [name, points] : lines) {
    std::sort(points.begin(), points.end());
    Json list = Json::array();
    for (const auto& [x, y] : points) list.push_back({x, rounded(y)});
    series.push_back({{"name", name}, {"colour", series.size()}, {"points", std::move(list)}});
  }
  constexpr double kWide = 8, kFarApart = 20;
  const bool is_wide = least > 0 && most / least >= kWide;
  if (highest / lowest > kFarApart)
    y_axis["scale"] = "log10";
  else
    y_axis["min"] = 0;
  return Json{{"kind", "lines"},
              {"title", fmt::format("{} over {}, {}", title, varied.key, on_cores(cores))},
              {"x",
               {{"label", varied.key + (is_size ? ", KiB" : "")},
                {"scale", is_wide ? "log2" : "linear"},
                {"format", is_size ? "count" : "number"},
                {"noun", varied.key}}},
              {"y", std::move(y_axis)},
              {"series", std::move(series)},
              {"note", note}};
}

// A bar per curve of a program, parts one after the other.
Json stack_chart(const Results& r, const std::string& family, uint32_t cores,
                 const std::string& title, Json y_axis,
                 const std::function<ChipRun::Parts(const ChipRun&)>& read) {
  Json categories = Json::array();
  std::vector<ChipRun::Parts> stacks;
  std::vector<std::string> names;
  for (const Curve& curve : r.curves) {
    const ChipRun* chip = chip_at(curve, cores);
    if (!chip || family_of(*curve.one) != family) continue;
    // "nbody/shared.size=16K": what follows the program.
    const std::string& label = curve.label;
    categories.push_back(label.size() > family.size() + 1 ? label.substr(family.size() + 1)
                                                          : chip->name);
    stacks.push_back(read(*chip));
    for (const auto& [name, value] : stacks.back())
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  Json series = Json::array();
  size_t colour = 0;
  for (const std::string& name : names) {
    const size_t mine = colour++;
    Json values = Json::array();
    bool any = false;
    for (const ChipRun::Parts& stack : stacks) {
      const auto part = std::ranges::find(stack, name, &std::pair<std::string, double>::first);
      const double value = part == stack.end() ? 0 : part->second;
      any |= value > 0;
      values.push_back(rounded(value, 5));
    }
    if (any) series.push_back({{"name", name}, {"colour", mine}, {"values", std::move(values)}});
  }
  return {{"kind", "bars"},
          {"title", fmt::format("{}, {} on {}", title, family, on_cores(cores))},
          {"categories", std::move(categories)},
          {"y", std::move(y_axis)},
          {"series", std::move(series)}};
}

std::vector<std::string> families(const Results& r) {
  std::vector<std::string> names;
  for (const Curve& curve : r.curves)
    if (std::ranges::find(names, family_of(*curve.one)) == names.end())
      names.push_back(family_of(*curve.one));
  return names;
}

bool any_energy(const Results& r) {
  for (const Curve& curve : r.curves)
    for (const Row& row : curve.rows)
      if (row.point.chip && row.point.chip->joules > 0) return true;
  return false;
}

void add_table_of_points(Page& page, const Results& r) {
  const std::vector<VariedKey>& vary = r.stored.study.vary;
  Json columns = {{{"name", "program"}}, {{"name", "chip"}}};
  for (const VariedKey& varied : vary) columns.push_back({{"name", varied.key}});
  for (const auto& [name, format, unit] : {std::tuple{"cores", "count", ""},
                                           {"cycles", "count", ""},
                                           {"time", "si", "s"},
                                           {"instructions per cycle", "number", ""},
                                           {"computing", "percent", ""},
                                           {"waiting", "percent", ""},
                                           {"energy", "si", "J"},
                                           {"power", "si", "W"}}) {
    Json column = {{"name", name}, {"format", format}};
    if (*unit != 0) column["unit"] = unit;
    columns.push_back(std::move(column));
  }
  Json rows = Json::array();
  for (const Curve& curve : r.curves)
    for (const Row& row : curve.rows) {
      if (!row.point.chip) continue;
      const ChipRun& chip = *row.point.chip;
      Json cells = {family_of(*curve.one), chip.name};
      for (size_t k = 0; k < vary.size(); ++k)
        cells.push_back(k < curve.one->chip_values.size() ? Json(curve.one->chip_values[k])
                                                          : Json(nullptr));
      double all = 0;
      for (const auto& [name, cycles] : chip.stack) all += cycles;
      const auto share = [&](const char* part) {
        for (const auto& [name, cycles] : chip.stack)
          if (name == part && all > 0) return rounded(cycles / all, 4);
        return Json(nullptr);
      };
      const Json of_table[] = {Json(row.point.cores),
                               Json(std::llround(chip.cycles)),
                               rounded(chip.seconds, 5),
                               rounded(chip.instructions_per_cycle, 4),
                               share("compute"),
                               share("waiting"),
                               chip.joules > 0 ? rounded(chip.joules, 4) : Json(nullptr),
                               chip.joules > 0 && chip.seconds > 0
                                   ? rounded(chip.joules / chip.seconds, 4)
                                   : Json(nullptr)};
      for (const Json& cell : of_table) cells.push_back(cell);
      rows.push_back(std::move(cells));
    }
  page.add_table({{"title", "All points on the chip"},
                  {"columns", std::move(columns)},
                  {"rows", std::move(rows)}},
                 "Chip");
}

}  // namespace

bool any_chip(const std::vector<Curve>& curves) {
  for (const Curve& curve : curves)
    for (const Row& row : curve.rows)
      if (row.point.chip) return true;
  return false;
}

void add_chips(Page& page, const Results& r) {
  page.add_section("Chip");
  page.add_text(
      "What the simulated chip did, with its caches, network and memory. Figures of chips are as "
      "good as their descriptions: comparisons between two of the same kind are what this is for.");
  const std::vector<uint32_t> cores = cores_of(r);
  const bool has_energy = any_energy(r);
  const Json cycles = {{"label", "cycles"}, {"format", "si"}};
  const Json joules = {{"label", "energy"}, {"format", "si"}, {"unit", "J"}};
  const ChipRead read_cycles = [](const ChipRun& c) { return c.cycles; };
  const ChipRead read_joules = [](const ChipRun& c) { return c.joules; };
  for (size_t key = 0; key < r.stored.study.vary.size(); ++key) {
    Views of_cycles, of_energy;
    for (const uint32_t n : cores) {
      if (auto chart = key_chart(r, key, n, "Cycles", cycles, read_cycles, ""))
        of_cycles.emplace_back(on_cores(n), std::move(*chart));
      if (auto chart = key_chart(r, key, n, "Energy of the chip", joules, read_joules,
                                 "By the chip's description; its energies do not change with "
                                 "sizes unless those keys are varied, too."))
        of_energy.emplace_back(on_cores(n), std::move(*chart));
    }
    if (!of_cycles.empty()) page.add_charts("cores", std::move(of_cycles));
    if (!of_energy.empty()) page.add_charts("cores", std::move(of_energy));
  }
  Views stacks, energies;
  for (const std::string& family : families(r))
    for (const uint32_t n : cores) {
      const std::string view = fmt::format("{}, {}", family, on_cores(n));
      const bool any = std::ranges::any_of(r.curves, [&](const Curve& curve) {
        return family_of(*curve.one) == family && chip_at(curve, n);
      });
      if (!any) continue;
      stacks.emplace_back(view,
                          stack_chart(r, family, n, "Where the cycles go",
                                      {{"label", "cycles of a core, on average"}, {"format", "si"}},
                                      [n](const ChipRun& chip) {
                                        ChipRun::Parts mean = chip.stack;
                                        for (auto& part : mean) part.second /= n;
                                        return mean;
                                      }));
      if (has_energy)
        energies.emplace_back(view, stack_chart(r, family, n, "Where the energy goes", joules,
                                                [](const ChipRun& chip) { return chip.energy; }));
    }
  page.add_charts("program", std::move(stacks));
  if (!energies.empty()) page.add_charts("program", std::move(energies));
  if (cores.size() > 1) {
    Json axis = cycles;
    axis["scale"] = "log10";
    page.add_chart(lines_chart(r.curves, "Cycles of the chip", axis,
                               [](const Curve&, const Row& row) -> std::optional<Reading> {
                                 if (!row.point.chip) return std::nullopt;
                                 return Reading{row.point.chip->cycles, {}, {}};
                               }));
    axis = joules;
    axis["scale"] = "log10";
    if (has_energy)
      page.add_chart(lines_chart(r.curves, "Energy of the chip", axis,
                                 [](const Curve&, const Row& row) -> std::optional<Reading> {
                                   if (!row.point.chip || row.point.chip->joules <= 0)
                                     return std::nullopt;
                                   return Reading{row.point.chip->joules, {}, {}};
                                 }));
  }
  add_table_of_points(page, r);
}

}  // namespace gpusim::sweep
