// A study as a table for a paper: LaTeX with the package booktabs.
#include <fmt/format.h>

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

}  // namespace

std::string results_latex(const Results& results) {
  std::string text = fmt::format(
      "% {}: made by gpusim {}. Needs \\usepackage{{booktabs}}.\n\\begin{{tabular}}{{lrrrrr{}}}\n"
      "\\toprule\nprogram & cores & instructions & speed-up & efficiency & imbalance",
      escaped(results.stored.study.title), results.stored.simulator.value("version", "?"),
      std::string(results.targets.size(), 'r'));
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
      text +=
          fmt::format("{} & {} & {} & {} & {} & {:.3g}",
                      &row == &curve.rows.front() ? escaped(curve.label) : "", count(p.cores),
                      count(p.instructions), s ? fmt::format("{:.4g}", s->speed_up) : "--",
                      s ? fmt::format("{:.1f}\\,\\%", 100 * s->efficiency) : "--", imbalance(p));
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
