#include "energy/power/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/escape_xml.h"
#include "device_sim/base/svg.h"

namespace gpusim::power {
namespace {

constexpr size_t kMostPoints = 4000;

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
  Svg svg(kLeft + kWidth + 24, kTop + kHeight + 84, title);
  svg.label(kLeft, 24, title, "title");
  if (begin > end || most <= 0) return svg.finish();
  const double span = std::max(end - begin, 1e-9);
  const TimeUnit unit(span, 2);
  const double scale = unit.per_second;
  const ValueAxis axis(most, 1.03, 6);
  const auto x_of = [&](double t) { return kLeft + (t - begin) / span * kWidth; };
  const auto y_of = [&](double w) {
    return kTop + kHeight - std::clamp(w / axis.top, 0.0, 1.0) * kHeight;
  };
  axis.draw(svg, kLeft, kTop, kWidth, kHeight);
  const double time_step = nice_step(span * scale, 8);
  for (double t = std::ceil(begin * scale / time_step) * time_step; t <= end * scale * 1.000001;
       t += time_step)
    svg.label(x_of(t / scale), kTop + kHeight + 18,
              fmt::format("{:g}", std::abs(t) < time_step * 1e-6 ? 0 : t), "label", "middle");
  for (const ChartMark& m : marks) {
    const double x = x_of(m.time.value());
    if (x < kLeft - 1 || x > kLeft + kWidth + 1) continue;
    svg.line(x, kTop, x, kTop + kHeight, "band");
    svg.label(x + 3, kTop + 11, m.label);
  }
  for (size_t s = 0; s < series.size(); ++s) {
    const char* colour = kChartColours[s % std::size(kChartColours)];
    const auto points = series[s].has_line ? thinned(series[s].points) : series[s].points;
    std::string text;
    const auto out = std::back_inserter(text);
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
    svg.raw(text);
    const double x = kLeft + 190 * static_cast<double>(s), y = kTop + kHeight + 62;
    svg.bar(x, y, 12, 12, colour, series[s].name);
    svg.label(x + 18, y + 10, series[s].name);
  }
  label_axes(svg, kLeft, kTop, kWidth, kHeight, fmt::format("time, {}", unit.name), "power, W");
  return svg.finish();
}

}  // namespace gpusim::power
