#include "energy/power/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpusim::power {
namespace {

using Json = nlohmann::ordered_json;

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

Json joules(const std::optional<Joules>& j) { return j ? Json(j->value()) : Json(nullptr); }

// Against the truth, or MTSM.
std::optional<double> difference(const std::optional<Joules>& e,
                                 const std::optional<Joules>& from) {
  if (!e || !from || from->value() == 0) return std::nullopt;
  return (*e / *from - 1) * 100;
}

}  // namespace

std::string comparison_table(const Comparison& comparison) {
  const std::vector<NamedEnergies> names = by_name(comparison);
  const bool has_truth =
      std::any_of(names.begin(), names.end(), [](const auto& n) { return n.truth.has_value(); });
  std::string text =
      fmt::format("{:<34} {:>6} {:>11} {:>9}", "name", "count", "seconds", "readings");
  if (has_truth) text += fmt::format(" {:>11}", "true J");
  for (int m = 0; m < kMethodCount; ++m)
    text += fmt::format(" {:>20}", std::string(title(static_cast<Method>(m))) + " J");
  text += '\n';
  for (const NamedEnergies& n : names) {
    text += fmt::format("{:<34} {:>6} {:>11.6f} {:>9}", shortened(n.name, 34), n.count,
                        n.duration.value(), n.readings);
    if (has_truth)
      text += n.truth ? fmt::format(" {:>11.5g}", n.truth->value()) : std::string(12, ' ');
    const auto& reference =
        has_truth ? n.truth : n.by_method[static_cast<size_t>(Method::kSynchronized)];
    for (const auto& energy : n.by_method) {
      std::string cell = energy ? fmt::format("{:.5g}", energy->value()) : "-";
      if (const auto d = difference(energy, reference)) cell += fmt::format(" ({:+.1f} %)", *d);
      text += fmt::format(" {:>20}", cell);
    }
    text += '\n';
  }
  text +=
      has_truth
          ? "In brackets: error against what was truly drawn.\n"
          : "In brackets: difference from MTSM; there is no reference here to call it an error.\n";
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text;
}

std::string interval_table(const Comparison& comparison) {
  std::string text =
      fmt::format("{:<34} {:>14} {:>11} {:>9}", "name", "begin s", "seconds", "readings");
  for (int m = 0; m < kMethodCount; ++m)
    text += fmt::format(" {:>11}", title(static_cast<Method>(m)));
  text += '\n';
  const Seconds zero =
      comparison.intervals.empty() ? Seconds(0) : comparison.intervals[0].interval.begin;
  for (const IntervalEnergies& e : comparison.intervals) {
    text +=
        fmt::format("{:<34} {:>14.6f} {:>11.6f} {:>9}", shortened(e.interval.name, 34),
                    (e.interval.begin - zero).value(), (e.interval.end - e.interval.begin).value(),
                    e.of(Method::kSynchronized).readings);
    for (const MethodFigure& f : e.by_method)
      text += fmt::format(" {:>11}", f.energy ? fmt::format("{:.5g}", f.energy->value()) : "-");
    text += '\n';
  }
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  Json out;
  out["schema"] = "gpusim-power-comparison-1";
  out["idle_W"] = comparison.idle.value();
  out["threshold_W"] = comparison.threshold.value();
  for (int m = 0; m < kMethodCount; ++m)
    out["methods"][key(static_cast<Method>(m))] = {{"title", title(static_cast<Method>(m))},
                                                   {"about", about(static_cast<Method>(m))}};
  out["names"] = Json::array();
  for (const NamedEnergies& n : by_name(comparison)) {
    Json row = {{"name", n.name},
                {"count", n.count},
                {"seconds", n.duration.value()},
                {"readings", n.readings},
                {"truth_J", joules(n.truth)}};
    for (size_t m = 0; m < kMethodCount; ++m)
      row["energy_J"][key(static_cast<Method>(m))] = joules(n.by_method[m]);
    out["names"].push_back(row);
  }
  out["intervals"] = Json::array();
  for (const IntervalEnergies& e : comparison.intervals) {
    Json row = {{"name", e.interval.name},
                {"begin_s", e.interval.begin.value()},
                {"end_s", e.interval.end.value()},
                {"truth_J", joules(e.truth)},
                {"readings", e.of(Method::kSynchronized).readings}};
    for (size_t m = 0; m < kMethodCount; ++m)
      row["energy_J"][key(static_cast<Method>(m))] = joules(e.by_method[m].energy);
    out["intervals"].push_back(row);
  }
  out["notes"] = comparison.notes;
  return out.dump(1) + "\n";
}

}  // namespace gpusim::power
