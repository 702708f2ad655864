#include "host/sweep/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "energy/report.h"

namespace gpusim::sweep {
namespace {

// Rows of a heat map: for a chip of few cores a row each, else of bins.
template <class F>
Json bins_json(const Point& point, F value) {
  Json column = Json::array();
  for (const Bin& bin : point.bins) column.push_back(rounded(value(bin), 4));
  return column;
}

// A column per number of cores; `value` of a bin, brought to shares of the column's greatest one.
template <class F>
Json heat(const Curve& curve, const std::string& title, const std::string& label,
          const std::string& note, F value) {
  Json columns = Json::array(), cells = Json::array();
  for (const Row& row : curve.rows) {
    double most = 0;
    for (const Bin& bin : row.point.bins) most = std::max(most, value(row, bin));
    if (most <= 0) continue;
    columns.push_back(grouped(row.point.cores));
    cells.push_back(bins_json(row.point, [&](const Bin& bin) { return value(row, bin) / most; }));
  }
  return {{"kind", "heat"},
          {"title", title},
          {"note", note},
          {"columns", std::move(columns)},
          {"x", {{"label", "simulated cores"}, {"noun", "cores"}}},
          {"y",
           {{"label", "place among the cores, first to last"},
            {"min", 0},
            {"max", 1},
            {"format", "percent"}}},
          {"cells", std::move(cells)},
          {"value", {{"label", label}, {"format", "percent"}, {"min", 0}, {"max", 1}}}};
}

std::string with_commas(double value) {
  return value < 100 ? fmt::format("{:.3g}", value)
                     : grouped(static_cast<uint64_t>(std::llround(value)));
}

}  // namespace

Json cores_axis() {
  return {{"label", "simulated cores"}, {"scale", "log2"}, {"format", "count"}, {"noun", "cores"}};
}

Json lines_chart(const std::vector<Curve>& curves, const std::string& title, Json y_axis,
                 const Read& read, const std::string& note) {
  Json series = Json::array();
  for (size_t i = 0; i < curves.size(); ++i) {
    Json points = Json::array();
    for (const Row& row : curves[i].rows) {
      const std::optional<Reading> r = read(curves[i], row);
      if (!r) continue;
      Json point = {row.point.cores, rounded(r->value)};
      if (r->low && r->high && *r->high > *r->low) {
        point.push_back(rounded(*r->low));
        point.push_back(rounded(*r->high));
      }
      points.push_back(std::move(point));
    }
    // A program keeps its colour in all charts.
    if (!points.empty())
      series.push_back({{"name", curves[i].label}, {"colour", i}, {"points", std::move(points)}});
  }
  Json chart = {{"kind", "lines"},
                {"title", title},
                {"x", cores_axis()},
                {"y", std::move(y_axis)},
                {"series", std::move(series)}};
  if (!note.empty()) chart["note"] = note;
  return chart;
}

bool any_value(const std::vector<Curve>& curves, const Read& read) {
  for (const Curve& curve : curves)
    for (const Row& row : curve.rows)
      if (read(curve, row)) return true;
  return false;
}

const SpeedUp* speed_up_of(const Curve& curve, const Row& row) {
  for (const SpeedUp& s : curve.speed_ups)
    if (s.cores == row.point.cores) return &s;
  return nullptr;
}

std::string class_title(const std::vector<Curve>& curves, size_t c) {
  bool is_placed = false;
  for (const Curve& curve : curves)
    for (const Row& row : curve.rows) is_placed |= row.point.memory_is_placed;
  return energy::class_title(c, is_placed);
}

bool uses_class(const std::vector<Curve>& curves, size_t c) {
  for (const Curve& curve : curves)
    for (const Row& row : curve.rows)
      if (row.point.classes[c] != 0) return true;
  return false;
}

Json class_chart(const std::vector<Curve>& curves, const Curve& curve) {
  Json series = Json::array();
  size_t colour = 0;
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    if (!uses_class(curves, c)) continue;
    const size_t mine = colour++;  // the same in the charts of all programs
    Json points = Json::array();
    bool any = false;
    for (const Row& row : curve.rows) {
      any |= row.point.classes[c] != 0;
      points.push_back({row.point.cores, rounded(static_cast<double>(row.point.classes[c]) /
                                                     static_cast<double>(std::max<uint64_t>(
                                                         1, row.point.instructions)),
                                                 4)});
    }
    if (any)
      series.push_back(
          {{"name", class_title(curves, c)}, {"colour", mine}, {"points", std::move(points)}});
  }
  return {{"kind", "area"},
          {"title", fmt::format("Instruction classes of {}", curve.label)},
          {"x", cores_axis()},
          {"y",
           {{"label", "share of all instructions"}, {"format", "percent"}, {"min", 0}, {"max", 1}}},
          {"series", std::move(series)}};
}

Json load_chart(const Curve& curve) {
  return heat(
      curve, fmt::format("Load of the cores, {}", curve.label),
      "instructions, share of the busiest",
      "One column per number of cores, of at most 64 groups of neighbouring cores; a group's "
      "colour is its mean beside that of the busiest group. Dark: the cores had little to do.",
      [](const Row&, const Bin& bin) { return bin.mean; });
}

Json core_energy_chart(const Curve& curve, const energy::Target& target) {
  return heat(
      curve, fmt::format("Dynamic energy over the cores, {} on {}", curve.label, target.name),
      "joules per core, share of the most",
      "Where on the chip the work's energy goes; idle power comes in addition, to all cores alike.",
      [&](const Row& row, const Bin& bin) {
        return energy::dynamic_energy(target, bin.classes, row.point.memory_is_placed)
                   .value.value() /
               std::max(1u, bin.cores);
      });
}

Json class_energy_chart(const std::vector<Curve>& curves, const Curve& curve, size_t t) {
  Json categories = Json::array(), series = Json::array();
  std::string target;
  for (const Row& row : curve.rows) {
    if (row.energy.empty()) continue;
    categories.push_back(
        fmt::format("{} core{}", grouped(row.point.cores), row.point.cores == 1 ? "" : "s"));
    target = row.energy[t].target->name;
  }
  size_t colour = 0;
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    if (!uses_class(curves, c)) continue;
    const size_t mine = colour++;
    Json values = Json::array();
    bool any = false;
    for (const Row& row : curve.rows) {
      if (row.energy.empty()) continue;
      const double joules = row.energy[t].classes[c].energy.value.value();
      any |= joules > 0;
      values.push_back(rounded(joules, 4));
    }
    if (any)
      series.push_back(
          {{"name", class_title(curves, c)}, {"colour", mine}, {"values", std::move(values)}});
  }
  return {{"kind", "bars"},
          {"title", fmt::format("Dynamic energy by class, {} on {}", curve.label, target)},
          {"categories", std::move(categories)},
          {"y", {{"label", "energy"}, {"format", "si"}, {"unit", "J"}}},
          {"series", std::move(series)}};
}

Json fit_chart(const Curve& curve) {
  const bool weak = curve.one->scaling == Scaling::kWeak;
  const SerialShare& s = *curve.serial;
  Json measured = Json::array(), ideal = Json::array(), law = Json::array();
  for (const SpeedUp& p : curve.speed_ups) {
    measured.push_back({p.cores, rounded(p.speed_up)});
    ideal.push_back({p.cores, p.cores});
    const auto at = [&](double share) {
      share = std::clamp(share, 0.0, 1.0);
      return weak ? gustafson(share, p.cores) : amdahl(share, p.cores);
    };
    law.push_back({p.cores, rounded(at(s.share)), rounded(at(s.share + s.uncertainty)),
                   rounded(at(s.share - s.uncertainty))});
  }
  const std::string limit =
      weak ? ""
      : s.share > 0
          ? fmt::format(" With that share no number of cores gives more than {} times the speed.",
                        with_commas(1 / s.share))
          : "";
  return {
      {"kind", "lines"},
      {"title", fmt::format("{} and {}'s law", curve.label, weak ? "Gustafson" : "Amdahl")},
      {"x", cores_axis()},
      {"y",
       {{"label", weak ? "scaled speed-up" : "speed-up"}, {"scale", "log10"}, {"format", "ratio"}}},
      {"series",
       {{{"name", "measured"}, {"colour", 0}, {"points", std::move(measured)}},
        {{"name", fmt::format("serial share {:.3g} %", 100 * s.share)},
         {"colour", 1},
         {"marks", false},
         {"band", true},
         {"points", std::move(law)}},
        {{"name", "ideal"}, {"style", "reference"}, {"points", std::move(ideal)}}}},
      {"note",
       fmt::format("Serial share {:.3g} % ± {:.2g} % (95 % confidence, from how far the points lie "
                   "off the law); points deviate from the law by {:.2g} % (root mean square).{}{}",
                   100 * s.share, 100 * s.uncertainty, 100 * s.deviation, limit,
                   s.deviation > 0.25
                       ? " That is far: the law does not describe this program, and the share "
                         "says little."
                       : "")}};
}

}  // namespace gpusim::sweep
