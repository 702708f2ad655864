#include "device_sim/base/chart_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "device_sim/base/chart_scale.h"
#include "device_sim/base/error.h"
#include "device_sim/base/escape_xml.h"
#include "device_sim/base/svg.h"

namespace gpusim::page {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kWidth = 332, kFont = 10.6, kLetter = 6.5,
                 kWideLetter = 10.6;  // 88 mm of 96 pixels per inch
constexpr const char* kDark = "#1c2530";
constexpr const char* kGrid = "#e3e8ed";
constexpr const char* kAxis = "#8793a0";
constexpr const char* kDashes[] = {"", "7 4", "2 3", "9 3 2 3"};
// Cividis, sampled, as in page.js.
constexpr int kRamp[][3] = {{0, 32, 77},     {0, 51, 111},    {57, 72, 107},   {87, 92, 109},
                            {112, 113, 115}, {138, 134, 120}, {166, 157, 117}, {196, 181, 108},
                            {228, 207, 91},  {255, 234, 70}};

double width_of(const std::string& text) {
  double width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;
    const bool is_wide = std::string_view("mwMW%@").find(c) != std::string_view::npos;
    width += is_wide ? kWideLetter : kLetter;
  }
  return width;
}

struct Look {
  std::string colour, dash;
  bool is_hatched = false;
};

std::vector<Look> looks(const Json& series) {
  std::vector<Look> list;
  size_t next = 0;
  for (const Json& s : series) {
    const std::string style = s.value("style", "");
    if (style == "idle" || style == "reference") {
      list.push_back({style == "idle" ? "#b9c2cb" : "#7b8794", style == "idle" ? "" : "5 4"});
      continue;
    }
    const size_t i = s.contains("colour") ? s["colour"].get<size_t>() : next++;
    const char* dash = style == "dashed"   ? kDashes[1]
                       : style == "dotted" ? kDashes[2]
                                           : kDashes[i / 8 % 4];
    list.push_back({kChartColours[i % 8], dash, i / 8 % 2 == 1});
  }
  return list;
}

class Drawing {
 public:
  explicit Drawing(const Json& chart) : chart_(chart) {}

  std::string draw() {
    const std::string kind = chart_.value("kind", "");
    if (kind == "lines" || kind == "area")
      curves(kind == "area");
    else if (kind == "bars")
      bars();
    else if (kind == "heat")
      heat();
    else
      throw Error(fmt::format("a chart of kind \"{}\" cannot be drawn", kind));
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:.0f}\" width=\"88mm\" "
        "height=\"{2:.1f}mm\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" "
        "font-size=\"{3:g}\">\n<title>{4}</title>\n<defs>{5}</defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{6}</svg>\n",
        kWidth, height_, height_ * 88 / kWidth, kFont, escape_xml(chart_.value("title", "")),
        hatches(), out_);
  }

 private:
  void line(double x1, double y1, double x2, double y2, const std::string& colour,
            const std::string& more = "") {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n", x1,
        y1, x2, y2, colour, more);
  }
  void text(double x, double y, const std::string& words, const char* anchor = "start") {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor,
        kDark, escape_xml(words));
  }
  void rect(double x, double y, double w, double h, const std::string& fill) {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y,
        std::max(0.0, w), std::max(0.0, h), fill);
  }
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  std::string hatches() const {
    std::string defs;
    for (size_t i = 0; i < 8; ++i)
      defs += fmt::format(
          "<pattern id=\"h{0}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"{1}\"/>"
          "<rect width=\"2\" height=\"6\" fill=\"#ffffff\" fill-opacity=\"0.75\"/></pattern>",
          i, kChartColours[i]);
    return defs;
  }
  static std::string fill_of(const Look& look) {
    if (!look.is_hatched) return look.colour;
    const auto* found = std::find(std::begin(kChartColours), std::end(kChartColours), look.colour);
    return fmt::format("url(#h{})", found - std::begin(kChartColours));
  }

  // Below the plot; moves the end of the picture.
  void legend(double y, const std::vector<Look>& look, bool is_boxed) {
    const Json& series = chart_["series"];
    height_ = y;
    if (series.size() < 2) return;
    double x = 4;
    y += 12;
    for (size_t i = 0; i < series.size(); ++i) {
      const std::string name = series[i].value("name", "");
      const double width = 26 + width_of(name) + 10;
      if (x > 4 && x + width > kWidth) x = 4, y += 15;
      if (is_boxed)
        rect(x, y - 8, 12, 9, fill_of(look[i]));
      else
        line(x, y - 4, x + 20, y - 4, look[i].colour,
             fmt::format("stroke-width=\"2\" stroke-dasharray=\"{}\"",
                         look[i].dash.empty() ? "none" : look[i].dash));
      text(x + (is_boxed ? 16 : 24), y, name);
      x += width;
    }
    height_ = y + 8;
  }

  void frame(const Scale& x, const Scale& y, double left, double right, double top, double bottom) {
    for (const double v : y.ticks(7)) {
      line(left, y.at(v), right, y.at(v), kGrid);
      text(left - 5, y.at(v) + 4, y.text(v), "end");
    }
    double widest = 10;
    for (const double v : x.ticks(100)) widest = std::max(widest, width_of(x.text(v)) + 8);
    for (const double v : x.ticks(static_cast<size_t>((right - left) / widest))) {
      line(x.at(v), bottom, x.at(v), bottom + 4, kAxis);
      text(x.at(v), bottom + 15, x.text(v), "middle");
    }
    line(left, bottom, right, bottom, kAxis);
    text((left + right) / 2, bottom + 30, x.label(), "middle");
    text(2, top - 8, y.label());
  }

  void curves(bool is_stacked) {
    const Json& series = chart_["series"];
    const std::vector<Look> look = looks(series);
    std::vector<double> xs, ys;
    std::map<double, double> sums;
    for (const Json& s : series)
      for (const Json& p : s["points"]) {
        if (!p[0].is_number() || !p[1].is_number()) continue;
        xs.push_back(p[0]);
        sums[p[0]] += p[1].get<double>();
        if (!is_stacked)
          for (size_t i = 1; i < p.size(); ++i)
            if (p[i].is_number()) ys.push_back(p[i]);
      }
    if (is_stacked) {
      ys.push_back(0);
      for (const auto& [x, sum] : sums) ys.push_back(sum);
    }
    const double top = 22, bottom = 180, right = kWidth - 12;
    const Scale probe(chart_["y"], ys, bottom, top, true);
    double left = 24;
    for (const double v : probe.ticks(7)) left = std::max(left, width_of(probe.text(v)) + 9);
    const Scale x(chart_["x"], xs, left, right, !is_stacked);
    const Scale& y = probe;
    frame(x, y, left, right, top, bottom);
    std::map<double, double> floor;
    for (size_t i = 0; i < series.size(); ++i) {
      std::vector<std::pair<double, double>> upper, lower;
      std::string bars;
      for (const Json& p : series[i]["points"]) {
        if (!p[0].is_number() || !p[1].is_number()) continue;
        const double at = p[0], value = p[1];
        if (is_stacked) {
          lower.emplace_back(x.at(at), y.at(floor[at]));
          upper.emplace_back(x.at(at), y.at(floor[at] += value));
        } else if (x.has(at) && y.has(value)) {
          upper.emplace_back(x.at(at), y.at(value));
          if (p.size() > 3 && p[2].is_number() && p[3].is_number() && y.has(p[2]))
            lower.emplace_back(y.at(p[2]), y.at(p[3]));
        }
      }
      if (is_stacked)
        area(upper, lower, fill_of(look[i]));
      else
        curve(series[i], upper, lower, look[i]);
    }
    legend(bottom + 38, look, is_stacked);
  }

  void area(const std::vector<std::pair<double, double>>& upper,
            const std::vector<std::pair<double, double>>& lower, const std::string& fill) {
    std::string path;
    for (const auto& [a, b] : upper)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", a, b);
    for (auto it = lower.rbegin(); it != lower.rend(); ++it)
      path += fmt::format("L{:.1f} {:.1f}", it->first, it->second);
    if (!path.empty()) add("<path d=\"{}Z\" fill=\"{}\"/>\n", path, fill);
  }

  // `ranges`: low and high of each point, where all have them.
  void curve(const Json& s, const std::vector<std::pair<double, double>>& points,
             const std::vector<std::pair<double, double>>& ranges, const Look& look) {
    std::string path;
    for (const auto& [a, b] : points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", a, b);
    if (path.empty()) return;
    if (ranges.size() == points.size() && s.value("band", false)) {
      std::vector<std::pair<double, double>> high, low;
      for (size_t i = 0; i < points.size(); ++i) {
        low.emplace_back(points[i].first, ranges[i].first);
        high.emplace_back(points[i].first, ranges[i].second);
      }
      area(high, low, look.colour + "\" fill-opacity=\"0.18");
    } else if (ranges.size() == points.size()) {
      for (size_t i = 0; i < points.size(); ++i)
        line(points[i].first, ranges[i].first, points[i].first, ranges[i].second, look.colour,
             "stroke-opacity=\"0.7\"");
    }
    add("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" "
        "stroke-linejoin=\"round\" stroke-dasharray=\"{}\"/>\n",
        path, look.colour, look.dash.empty() ? "none" : look.dash);
    if (s.value("style", "") == "reference" || !s.value("marks", true) || points.size() > 100)
      return;
    for (const auto& [a, b] : points)
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\" fill=\"{}\"/>\n", a, b, look.colour);
    if (s.value("labels", false))
      for (const auto& [a, b] : points) {
        const std::string name = s.value("name", "");
        const bool is_right = a + 6 + width_of(name) < kWidth;
        text(is_right ? a + 6 : a - 6, b + 4, name, is_right ? "start" : "end");
      }
  }

  void bars() {
    const Json& series = chart_["series"];
    const Json& categories = chart_["categories"];
    const std::vector<Look> look = looks(series);
    double left = 20;
    std::vector<double> sums(categories.size());
    for (size_t c = 0; c < categories.size(); ++c) {
      left = std::max(left, width_of(categories[c].get<std::string>()) + 9);
      for (const Json& s : series)
        if (s["values"][c].is_number()) sums[c] += s["values"][c].get<double>();
    }
    left = std::min(left, kWidth * 0.45);
    std::vector<double> all = sums;
    all.push_back(0);
    const double row = 15, top = 8, bottom = top + row * static_cast<double>(categories.size());
    const Scale x(chart_["y"], all, left, kWidth - 58, false);
    for (const double v : x.ticks(4)) {
      line(x.at(v), top, x.at(v), bottom, kGrid);
      text(x.at(v), bottom + 14, x.text(v), "middle");
    }
    for (size_t c = 0; c < categories.size(); ++c) {
      const double y = top + row * static_cast<double>(c);
      text(left - 5, y + row / 2 + 4, categories[c].get<std::string>(), "end");
      double at = 0;
      for (size_t i = 0; i < series.size(); ++i) {
        if (!series[i]["values"][c].is_number()) continue;
        const double value = series[i]["values"][c];
        rect(x.at(at), y + 2, x.at(at + value) - x.at(at), row - 4, fill_of(look[i]));
        at += value;
      }
      text(x.at(at) + 4, y + row / 2 + 4,
           number_text(sums[c], chart_["y"].value("format", "number"),
                       chart_["y"].value("unit", ""), 3));
    }
    line(left, top, left, bottom, kAxis);
    text((left + kWidth - 58) / 2, bottom + 29, x.label(), "middle");
    legend(bottom + 36, look, true);
  }

  void heat() {
    const Json& columns = chart_["columns"];
    const double left = 44, right = kWidth - 6, top = 22, bottom = 170;
    double low = chart_["value"].value("min", 1e300), high = chart_["value"].value("max", -1e300);
    const bool is_given = low <= high;
    for (const Json& column : chart_["cells"])
      for (const Json& v : column)
        if (v.is_number() && !is_given) {
          low = std::min(low, v.get<double>());
          high = std::max(high, v.get<double>());
        }
    const double step = (right - left) / static_cast<double>(std::max<size_t>(1, columns.size()));
    double widest = 8;
    for (size_t c = 0; c < columns.size(); ++c) {
      const Json& column = chart_["cells"][c];
      const double h = (bottom - top) / static_cast<double>(std::max<size_t>(1, column.size()));
      for (size_t r = 0; r < column.size(); ++r)
        rect(left + step * static_cast<double>(c), top + h * static_cast<double>(r), step - 1,
             h + 0.3,
             column[r].is_number()
                 ? heat_colour(high > low ? (column[r].get<double>() - low) / (high - low) : 1)
                 : "#eef1f4");
      widest = std::max(widest, width_of(columns[c].get<std::string>()) + 6);
    }
    const auto every = static_cast<size_t>(std::ceil(widest / step));
    for (size_t c = 0; c < columns.size(); c += every)
      text(left + step * (static_cast<double>(c) + 0.5), bottom + 14, columns[c], "middle");
    const Json& y = chart_["y"];
    const double first = y.value("min", 0.0), last = y.value("max", 1.0);
    for (const double share : {0.0, 0.5, 1.0})
      text(left - 5, top + share * (bottom - top) + 4,
           number_text(first + share * (last - first), y.value("format", "number"),
                       y.value("unit", ""), 3),
           "end");
    text((left + right) / 2, bottom + 28, chart_["x"].value("label", ""), "middle");
    text(2, top - 8, y.value("label", ""));
    constexpr int kSteps = 40;
    for (int i = 0; i < kSteps; ++i)
      rect(left + 3.0 * i, bottom + 36, 3.3, 8, heat_colour(i / (kSteps - 1.0)));
    const std::string format = chart_["value"].value("format", "number"),
                      unit = chart_["value"].value("unit", "");
    text(left - 5, bottom + 44, number_text(low, format, unit, 3), "end");
    text(left + 126, bottom + 44, number_text(high, format, unit, 3));
    text(left, bottom + 58, chart_["value"].value("label", ""));
    height_ = bottom + 64;
  }

  const Json& chart_;
  std::string out_;
  double height_ = 0;
};

}  // namespace

std::string heat_colour(double share) {
  constexpr int kLast = std::size(kRamp) - 1;
  const double at = std::clamp(share, 0.0, 1.0) * kLast;
  const int i = std::min(kLast - 1, static_cast<int>(at));
  int mixed[3];
  for (int k = 0; k < 3; ++k)
    mixed[k] =
        static_cast<int>(std::lround(kRamp[i][k] + (kRamp[i + 1][k] - kRamp[i][k]) * (at - i)));
  return fmt::format("rgb({},{},{})", mixed[0], mixed[1], mixed[2]);
}

std::string chart_svg(const Json& chart) { return Drawing(chart).draw(); }

}  // namespace gpusim::page
