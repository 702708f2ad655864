#include "host/cli/power_picture.h"

#include <algorithm>

#include "device_sim/base/page.h"
#include "energy/power/correct.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

// A page draws every point: the extremes of groups are enough.
power::ChartSeries thinned(const power::ChartSeries& series, size_t most) {
  if (series.points.size() <= most) return series;
  power::ChartSeries thin{.name = series.name, .has_line = series.has_line};
  const size_t group = 2 * series.points.size() / most + 1;
  for (size_t i = 0; i < series.points.size(); i += group) {
    const auto begin = series.points.begin() + static_cast<ptrdiff_t>(i);
    const auto end =
        series.points.begin() + static_cast<ptrdiff_t>(std::min(i + group, series.points.size()));
    const auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    thin.points.push_back(*std::min(low, high));
    if (low != high) thin.points.push_back(*std::max(low, high));
  }
  return thin;
}

}  // namespace

void PictureFiles::check() const {
  if (!svg.empty()) check_output_file("--svg", svg);
  if (!html.empty()) check_output_file("--html", html);
}

void write_pictures(const PictureFiles& files, const std::string& title,
                    std::vector<power::ChartSeries> series, const std::string& text) {
  power::Seconds begin(1e300);
  for (const power::ChartSeries& s : series)
    for (const auto& [t, w] : s.points) begin = std::min(begin, t);
  for (power::ChartSeries& s : series)
    for (auto& [t, w] : s.points) t -= begin;
  if (!files.svg.empty())
    write_output_file("--svg", files.svg, power::power_chart(title, series, {}));
  if (files.html.empty()) return;
  page::Page page(title);
  page.add_section("Power over time");
  page::Json chart = {{"kind", "lines"},
                      {"title", "Power"},
                      {"x", {{"label", "time"}, {"format", "si"}, {"unit", "s"}}},
                      {"y", {{"label", "power"}, {"format", "si"}, {"unit", "W"}, {"min", 0}}},
                      {"series", page::Json::array()}};
  for (const power::ChartSeries& s : series) {
    page::Json points = page::Json::array();
    for (const auto& [t, w] : thinned(s, 3000).points)
      points.push_back({page::rounded(t.value(), 7), page::rounded(w.value())});
    chart["series"].push_back({{"name", s.name}, {"marks", false}, {"points", points}});
  }
  page.add_chart(chart);
  page.add_section("Numbers");
  page.add_code(text);
  write_output_file("--html", files.html, page.html());
}

power::ChartSeries series_of(const std::string& name, const std::vector<power::Sample>& samples) {
  power::ChartSeries series{.name = name};
  for (const power::Sample& s : samples) series.points.emplace_back(s.time, s.power);
  return series;
}

std::vector<power::ChartSeries> calibration_series(const power::Trace& trace,
                                                   const std::optional<power::Trace>& reference,
                                                   const power::Calibration& calibration) {
  std::vector<power::ChartSeries> series;
  if (reference) {
    const power::ReferenceFit& fit = *calibration.reference;
    const power::Seconds offset =
        fit.is_smoothed() ? fit.best_slope().clock_offset : fit.window.clock_offset;
    std::vector<power::Sample> moved = reference->samples;
    for (power::Sample& s : moved) s.time -= offset;
    std::erase_if(moved, [&](const power::Sample& s) {
      return s.time < trace.samples.front().time || s.time > trace.samples.back().time;
    });
    series.push_back(series_of("reference", moved));
  }
  series.push_back(series_of("as read", trace.samples));
  const auto corrected = power::unsmooth(calibration.updates, calibration.profile);
  series.push_back(series_of("corrected", corrected));
  return series;
}

}  // namespace gpusim::host
