// A study as a table for a paper: LaTeX with the package booktabs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "energy/report.h"
#include "host/sweep/results.h"

namespace gpusim::sweep {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

// "967 µJ" without letters that old engines do not know.
std::string quantity(const std::string& pretty) {
  std::string out = pretty;
  if (const size_t at = out.find("µ"); at != std::string::npos)
    out.replace(at, std::string("µ").size(), "$\\mu$");
  if (const size_t at = out.find(' '); at != std::string::npos) out.replace(at, 1, "\\,");
  return out;
}

std::string count(uint64_t value) {
  std::string text = grouped(value);
  for (size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 3)
    text.replace(at, 1, "{,}");
  return text;
}

// What has no column of its own.
std::string program_of(const Results& results, const Curve& curve) {
  if (curve.one->chip.empty()) return curve.label;
  std::string text = family_of(*curve.one);
  if (results.stored.study.chips.size() > 1) {
    const std::string& chip = curve.one->chip;
    size_t end = chip.size();
    for (const VariedKey& varied : results.stored.study.vary)
      end = std::min(end, chip.find("," + varied.key + "="));
    text += " on " + chip.substr(0, end);
  }
  if (results.stored.study.backends.size() > 1) text += fmt::format(" ({})", curve.backend);
  return text;
}

}  // namespace

std::string results_latex(const Results& results) {
  const std::vector<VariedKey>& vary = results.stored.study.vary;
  bool has_chip = false;
  for (const Curve& curve : results.curves)
    for (const Row& row : curve.rows) has_chip |= row.point.chip.has_value();
  std::string text = fmt::format(
      "% {}: made by gpusim {}. Needs \\usepackage{{booktabs}}.\n\\begin{{tabular}}{{l{}rrrrr{}}}\n"
      "\\toprule\nprogram",
      escaped(results.stored.study.title), results.stored.simulator.value("version", "?"),
      std::string(vary.size(), 'r'), std::string(results.targets.size() + (has_chip ? 3 : 0), 'r'));
  for (const VariedKey& varied : vary) text += fmt::format(" & {}", escaped(varied.key));
  text += " & cores & instructions & speed-up & efficiency & imbalance";
  if (has_chip) text += " & cycles & IPC & energy, chip";
  for (const energy::Target& t : results.targets)
    text += fmt::format(" & energy, {}", escaped(t.name));
  text += " \\\\\n";
  for (const Curve& curve : results.curves) {
    text += "\\midrule\n";
    for (const Row& row : curve.rows) {
      const Point& p = row.point;
      const SpeedUp* s = nullptr;
      for (const SpeedUp& one : curve.speed_ups)
        if (one.cores == p.cores) s = &one;
      const bool is_first = &row == &curve.rows.front();
      text += is_first ? escaped(program_of(results, curve)) : "";
      for (size_t k = 0; k < vary.size(); ++k)
        text += " & " + (is_first && k < curve.one->chip_values.size()
                             ? escaped(curve.one->chip_values[k])
                             : std::string());
      text +=
          fmt::format(" & {} & {} & {} & {} & {:.3g}", count(p.cores), count(p.instructions),
                      s ? fmt::format("{:.4g}", s->speed_up) : "--",
                      s ? fmt::format("{:.1f}\\,\\%", 100 * s->efficiency) : "--", imbalance(p));
      if (p.chip)
        text += fmt::format(
            " & {} & {:.3g} & {}", count(static_cast<uint64_t>(std::llround(p.chip->cycles))),
            p.chip->instructions_per_cycle,
            p.chip->joules > 0 ? quantity(energy::pretty(energy::Joules(p.chip->joules)))
                               : std::string("--"));
      else if (has_chip)
        text += " & -- & -- & --";
      for (size_t t = 0; t < results.targets.size(); ++t)
        text +=
            " & " + (row.energy.size() > t ? quantity(energy::pretty(row.energy[t].dynamic.value))
                                           : std::string("--"));
      text += " \\\\\n";
    }
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace gpusim::sweep
