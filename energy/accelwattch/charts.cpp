#include "energy/accelwattch/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "device_sim/base/escape_xml.h"
#include "device_sim/base/svg.h"
#include "energy/accelwattch/components.h"

namespace gpusim::accelwattch {

namespace {

constexpr size_t kMostGroups = 12;

// Grey, the colours of all charts, and four more for what is rarely much. Each one stands out from
// both grounds.
constexpr std::array<const char*, kMostGroups> kColours = {
    "#7f8c99",        kChartColours[0], kChartColours[1], kChartColours[2],
    kChartColours[3], "#8e6bd1",        kChartColours[5], kChartColours[4],
    "#d3574b",        "#6b9e2f",        "#5566cc",        kChartColours[7]};
std::string short_name(const std::string& name, size_t most) {
  return name.size() <= most ? name : name.substr(0, most - 2) + "..";
}

// Known groups keep their colours in all charts; others take them by their place.
const char* colour(const std::vector<Segment>& groups, size_t i) {
  static constexpr std::array<std::string_view, kMostGroups> kKnown = {
      "Constant",      "Register file",        "Static",       "Instruction supply",   "DRAM",
      "Integer units", "L1, shared, constant", "Tensor cores", "Floating-point units", "Idle SMs",
      "L2 and NoC",    "SFU and texture"};
  for (size_t k = 0; k < kKnown.size(); ++k)
    if (groups[i].label == kKnown[k]) return kColours[k];
  if (groups[i].label == "Not in a component" || groups[i].label == "Other") return "#a9b1ba";
  return kColours[i % kColours.size()];
}

void legend(Svg& svg, double x, double y, const std::vector<Segment>& groups) {
  for (size_t g = 0; g < groups.size(); ++g) {
    svg.bar(x, y + 20 * static_cast<double>(g), 12, 12, colour(groups, g), groups[g].label);
    svg.label(x + 18, y + 10 + 20 * static_cast<double>(g), groups[g].label);
  }
}

}  // namespace

std::vector<Segment> grouped_components(const Sheet& sheet) {
  std::vector<Segment> groups;
  const size_t kernels = sheet.kernels.size();
  const auto group_of = [&](const std::string& label) -> Segment& {
    for (Segment& g : groups)
      if (g.label == label) return g;
    return groups.emplace_back(Segment{label, std::vector<double>(kernels)});
  };
  for (size_t c = 0; c < sheet.components.size(); ++c) {
    const ComponentInfo* info = find_component(sheet.components[c]);
    Segment& g = group_of(info ? std::string(info->group) : sheet.components[c]);
    for (size_t k = 0; k < kernels; ++k) g.values[k] += sheet.kernels[k].component[c].value();
  }
  Segment missing{"Not in a component", std::vector<double>(kernels)};
  for (size_t k = 0; k < kernels; ++k) {
    const Watts rest = sheet.kernels[k].model - sheet.kernels[k].component_sum();
    if (rest > sheet.kernels[k].model * 0.001) missing.values[k] = rest.value();
  }
  groups.push_back(missing);
  const auto sum = [](const Segment& g) {
    return std::accumulate(g.values.begin(), g.values.end(), 0.0);
  };
  std::erase_if(groups, [&](const Segment& g) { return sum(g) <= 0; });
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Segment& a, const Segment& b) { return sum(a) > sum(b); });
  if (groups.size() > kMostGroups) {
    Segment other{"Other", std::vector<double>(kernels)};
    for (size_t g = kMostGroups - 1; g < groups.size(); ++g)
      for (size_t k = 0; k < kernels; ++k) other.values[k] += groups[g].values[k];
    groups.resize(kMostGroups - 1);
    groups.push_back(other);
  }
  return groups;
}

std::string correlation_chart(const Sheet& sheet, const Accuracy& accuracy,
                              const std::string& title) {
  constexpr double kSize = 430, kLeft = 62, kTop = 48;
  Svg svg(kLeft + kSize + 52, kTop + kSize + 58, title);
  double most = 0;
  for (const SheetKernel& k : sheet.kernels)
    most = std::max({most, k.model.value(), k.measured.value()});
  const ValueAxis axis(most, 1.02, 6);
  const double top = axis.top;
  const auto x_of = [&](double w) { return kLeft + w / top * kSize; };
  const auto y_of = [&](double w) { return kTop + kSize - w / top * kSize; };
  svg.label(kLeft, 24, title, "title");
  svg.label(kLeft, 40,
            fmt::format("{} kernels, MAPE {:.2f} %{}", accuracy.kernels, accuracy.mape,
                        accuracy.pearson_r ? fmt::format(", r {:.3f}", *accuracy.pearson_r) : ""));
  for (double w = 0; w <= top * 1.0001; w += axis.step) {
    svg.line(x_of(w), kTop, x_of(w), kTop + kSize, w == 0 ? "axis" : "grid");
    svg.label(x_of(w), kTop + kSize + 18, fmt::format("{:g}", w), "label", "middle");
  }
  axis.draw(svg, kLeft, kTop, kSize, kSize);
  svg.line(x_of(0), y_of(0), x_of(top), y_of(top), "exact");
  svg.line(x_of(0), y_of(0), x_of(top / 1.1), y_of(top), "band");
  svg.line(x_of(0), y_of(0), x_of(top), y_of(top * 0.9), "band");
  svg.label(x_of(top) + 5, y_of(top * 0.9) + 4, "-10 %");
  svg.label(x_of(top / 1.1), y_of(top) - 5, "+10 %", "label", "middle");
  PointLabels labels(kLeft, kLeft + kSize);
  for (const SheetKernel& k : sheet.kernels) {
    const double x = x_of(k.measured.value()), y = y_of(k.model.value());
    svg.point(x, y,
              fmt::format("{}: measured {:.1f} W, modelled {:.1f} W, {:+.1f} %", k.name,
                          k.measured.value(), k.model.value(), percent_error(k.model, k.measured)));
    labels.add(x, y, short_name(k.name, 24));
  }
  labels.draw(svg);
  label_axes(svg, kLeft, kTop, kSize, kSize, "measured power, W", "modelled power, W");
  return svg.finish();
}

std::string component_chart(const Sheet& sheet, const std::string& title) {
  const std::vector<Segment> groups = grouped_components(sheet);
  const size_t kernels = sheet.kernels.size();
  size_t longest = 0;
  for (const SheetKernel& k : sheet.kernels)
    longest = std::max(longest, std::min<size_t>(k.name.size(), 30));
  const double left = 24 + 6.9 * static_cast<double>(longest), width = 620, row = 21, top = 52;
  const double height = row * static_cast<double>(kernels);
  const double legend_height = 20 * static_cast<double>(groups.size()) + 40;
  Svg svg(left + width + 190, top + std::max(height, legend_height) + 52, title);
  double most = 0;
  for (const SheetKernel& k : sheet.kernels)
    most = std::max({most, k.model.value(), k.measured.value(), k.component_sum().value()});
  const ValueAxis axis(most, 1.01, 6);
  const double end = axis.top;
  const auto x_of = [&](double w) { return left + w / end * width; };
  svg.label(16, 24, title, "title");
  for (double w = 0; w <= end * 1.0001; w += axis.step) {
    svg.line(x_of(w), top - 4, x_of(w), top + height, w == 0 ? "axis" : "grid");
    svg.label(x_of(w), top + height + 18, fmt::format("{:g}", w), "label", "middle");
  }
  bool any_measured = false;
  for (size_t k = 0; k < kernels; ++k) {
    const double y = top + row * static_cast<double>(k);
    svg.label(left - 8, y + 14, short_name(sheet.kernels[k].name, 30), "label", "end");
    double at = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      const double w = groups[g].values[k];
      if (w <= 0) continue;
      svg.bar(x_of(at), y + 2, w / end * width, row - 5, colour(groups, g),
              fmt::format("{}: {} {:.2f} W", sheet.kernels[k].name, groups[g].label, w));
      at += w;
    }
    if (sheet.kernels[k].measured.value() <= 0) continue;
    const double measured = x_of(sheet.kernels[k].measured.value());
    svg.line(measured, y, measured, y + row - 1, "mark");
    any_measured = true;
  }
  svg.label(left + width / 2, top + height + 40, "power, W", "label", "middle");
  legend(svg, left + width + 24, top, groups);
  if (!any_measured) return svg.finish();
  const double mark_y = top + 20 * static_cast<double>(groups.size()) + 8;
  svg.line(left + width + 30, mark_y - 2, left + width + 30, mark_y + 14, "mark");
  svg.label(left + width + 42, mark_y + 10, "measured");
  return svg.finish();
}

std::string time_chart(const TimeSeries& series, const std::string& title) {
  constexpr double kLeft = 62, kTop = 48, kWidth = 680, kHeight = 300;
  Svg svg(kLeft + kWidth + 190, kTop + kHeight + 56, title);
  const size_t slices = series.start_s.size();
  double most = 0;
  for (size_t i = 0; i < slices; ++i) {
    double sum = 0;
    for (const Segment& s : series.watts) sum += s.values[i];
    most = std::max(most, sum);
  }
  svg.label(kLeft, 24, title, "title");
  if (slices == 0 || most <= 0) return svg.finish();
  const double begin = series.start_s.front(), span = series.end_s.back() - begin;
  const TimeUnit unit(span, 1);
  const double scale = unit.per_second;
  const ValueAxis axis(most, 1.02, 5);
  const auto x_of = [&](double t) { return kLeft + (t - begin) / span * kWidth; };
  const auto y_of = [&](double w) { return kTop + kHeight - w / axis.top * kHeight; };
  axis.draw(svg, kLeft, kTop, kWidth, kHeight);
  const double time_step = nice_step(span * scale, 8);
  for (double t = 0; t <= span * scale * 1.0001; t += time_step)
    svg.label(x_of(begin + t / scale), kTop + kHeight + 18, fmt::format("{:g}", t), "label",
              "middle");
  std::vector<double> below(slices, 0.0);
  for (size_t s = 0; s < series.watts.size(); ++s) {
    std::string path, back;
    for (size_t i = 0; i < slices; ++i) {
      const double low = y_of(below[i]), high = y_of(below[i] + series.watts[s].values[i]);
      const double x1 = x_of(series.start_s[i]), x2 = x_of(series.end_s[i]);
      path +=
          fmt::format("{}{:.2f} {:.2f} L{:.2f} {:.2f} ", i == 0 ? "M" : "L", x1, high, x2, high);
      back = fmt::format("L{:.2f} {:.2f} L{:.2f} {:.2f} ", x2, low, x1, low) + back;
      below[i] += series.watts[s].values[i];
    }
    svg.raw(fmt::format("<path d=\"{}{}Z\" fill=\"{}\"><title>{}</title></path>\n", path, back,
                        colour(series.watts, s), escape_xml(series.watts[s].label)));
  }
  label_axes(svg, kLeft, kTop, kWidth, kHeight, fmt::format("time, {}", unit.name), "power, W");
  legend(svg, kLeft + kWidth + 24, kTop, series.watts);
  return svg.finish();
}

}  // namespace gpusim::accelwattch
