#include "energy/power/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "energy/accelwattch/charts.h"
#include "energy/escape_xml.h"

namespace gpusim::power {
namespace {

using energy::escape_xml;

constexpr const char* kColours[] = {"#3b7dd8", "#e8903a", "#3aa76d", "#c94f7c", "#8e6bd1"};
constexpr size_t kMostPoints = 4000;

// 1, 2 or 5 times a power of ten, so that about `count` steps make `range`.
double nice_step(double range, int count) {
  const double rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) return m * power;
  return 10 * power;
}

std::vector<std::pair<Seconds, Watts>> thinned(const std::vector<std::pair<Seconds, Watts>>& all) {
  if (all.size() <= kMostPoints) return all;
  std::vector<std::pair<Seconds, Watts>> some;
  const size_t group = 2 * all.size() / kMostPoints + 1;
  for (size_t i = 0; i < all.size(); i += group) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(i);
    const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(i + group, all.size()));
    const auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    some.push_back(*std::min(low, high));
    if (low != high) some.push_back(*std::max(low, high));
  }
  return some;
}

}  // namespace

std::string power_chart(const std::string& title, const std::vector<ChartSeries>& series,
                        const std::vector<ChartMark>& marks) {
  constexpr double kLeft = 64, kTop = 46, kWidth = 760, kHeight = 320;
  double begin = 1e300, end = -1e300, most = 0;
  for (const ChartSeries& s : series)
    for (const auto& [t, w] : s.points) {
      begin = std::min(begin, t.value());
      end = std::max(end, t.value());
      most = std::max(most, w.value());
    }
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
      "height=\"{1:g}\" role=\"img\" class=\"chart\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<rect class=\"ground\" width=\"{0:g}\" height=\"{1:g}\"/>\n",
      kLeft + kWidth + 24, kTop + kHeight + 84, escape_xml(title), accelwattch::chart_style());
  const auto out = std::back_inserter(text);
  const auto label = [&](double x, double y, const std::string& what, const char* kind,
                         const char* anchor) {
    fmt::format_to(out,
                   "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                   kind, x, y, anchor, escape_xml(what));
  };
  label(kLeft, 24, title, "title", "start");
  if (begin > end || most <= 0) return text + "</svg>\n";
  const double span = std::max(end - begin, 1e-9);
  const double scale = span >= 2 ? 1 : span >= 2e-3 ? 1e3 : 1e6;
  const char* unit = scale == 1 ? "s" : scale == 1e3 ? "ms" : "us";
  const double step = nice_step(most, 6), top = std::ceil(most * 1.03 / step) * step;
  const auto x_of = [&](double t) { return kLeft + (t - begin) / span * kWidth; };
  const auto y_of = [&](double w) {
    return kTop + kHeight - std::clamp(w / top, 0.0, 1.0) * kHeight;
  };
  for (double w = 0; w <= top * 1.0001; w += step) {
    fmt::format_to(out,
                   "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                   w == 0 ? "axis" : "grid", kLeft, y_of(w), kLeft + kWidth, y_of(w));
    label(kLeft - 8, y_of(w) + 4, fmt::format("{:g}", w), "label", "end");
  }
  const double time_step = nice_step(span * scale, 8);
  for (double t = std::ceil(begin * scale / time_step) * time_step; t <= end * scale * 1.000001;
       t += time_step)
    label(x_of(t / scale), kTop + kHeight + 18,
          fmt::format("{:g}", std::abs(t) < time_step * 1e-6 ? 0 : t), "label", "middle");
  for (const ChartMark& m : marks) {
    const double x = x_of(m.time.value());
    if (x < kLeft - 1 || x > kLeft + kWidth + 1) continue;
    fmt::format_to(
        out, "<line class=\"band\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
        x, kTop, kTop + kHeight);
    label(x + 3, kTop + 11, m.label, "label", "start");
  }
  for (size_t s = 0; s < series.size(); ++s) {
    const char* colour = kColours[s % std::size(kColours)];
    const auto points = series[s].has_line ? thinned(series[s].points) : series[s].points;
    if (series[s].has_line) {
      fmt::format_to(out, "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"",
                     colour);
      for (const auto& [t, w] : points)
        fmt::format_to(out, "{:.2f},{:.2f} ", x_of(t.value()), y_of(w.value()));
      fmt::format_to(out, "\"><title>{}</title></polyline>\n", escape_xml(series[s].name));
    } else {
      for (const auto& [t, w] : points)
        fmt::format_to(
            out, "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2\" fill=\"{}\" fill-opacity=\"0.6\"/>\n",
            x_of(t.value()), y_of(w.value()), colour);
    }
    const double x = kLeft + 190 * static_cast<double>(s), y = kTop + kHeight + 62;
    fmt::format_to(out,
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x,
                   y, colour);
    label(x + 18, y + 10, series[s].name, "label", "start");
  }
  label(kLeft + kWidth / 2, kTop + kHeight + 42, fmt::format("time, {}", unit), "label", "middle");
  fmt::format_to(out,
                 "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(18 {:.0f}) "
                 "rotate(-90)\">power, W</text>\n",
                 kTop + kHeight / 2);
  return text + "</svg>\n";
}

}  // namespace gpusim::power
