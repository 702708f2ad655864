#include "device_sim/base/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "device_sim/base/escape_xml.h"

namespace gpusim {
namespace {

constexpr const char* kStyleBegin = "<style>";
constexpr const char* kStyleEnd = "</style>";

}  // namespace

Svg::Svg(double width, double height, const std::string& title) {
  fmt::format_to(std::back_inserter(text_),
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
                 "width=\"{0:g}\" height=\"{1:g}\" role=\"img\" class=\"chart\">\n<title>{2}"
                 "</title>\n{3}{4}{5}\n"
                 "<rect class=\"ground\" width=\"{0:g}\" height=\"{1:g}\"/>\n",
                 width, height, escape_xml(title), kStyleBegin, svg_style(), kStyleEnd);
}

void Svg::line(double x1, double y1, double x2, double y2, const char* kind) {
  fmt::format_to(std::back_inserter(text_),
                 "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                 kind, x1, y1, x2, y2);
}

void Svg::label(double x, double y, const std::string& text, const char* kind, const char* anchor,
                const std::string& more) {
  fmt::format_to(std::back_inserter(text_),
                 "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n",
                 kind, x, y, anchor, more, escape_xml(text));
}

void Svg::bar(double x, double y, double width, double height, const std::string& colour,
              const std::string& tip) {
  fmt::format_to(std::back_inserter(text_),
                 "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                 "fill=\"{}\"><title>{}</title></rect>\n",
                 x, y, width, height, colour, escape_xml(tip));
}

void Svg::point(double x, double y, const std::string& tip) {
  fmt::format_to(std::back_inserter(text_),
                 "<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}</title>"
                 "</circle>\n",
                 x, y, escape_xml(tip));
}

double nice_step(double range, int count) {
  const double rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) return m * power;
  return 10 * power;
}

ValueAxis::ValueAxis(double most, double room, int count)
    : step(nice_step(most, count)), top(std::ceil(most * room / step) * step) {}

void ValueAxis::draw(Svg& svg, double left, double top_y, double width, double height) const {
  for (int tick = 0; tick <= std::lround(top / step); ++tick) {
    const double v = tick * step;
    const double y = top_y + height - v / top * height;
    svg.line(left, y, left + width, y, tick == 0 ? "axis" : "grid");
    svg.label(left - 8, y + 4, fmt::format("{:g}", v), "label", "end");
  }
}

TimeUnit::TimeUnit(double span_s, double least) : per_second(1e9), name("ns") {
  constexpr std::pair<double, const char*> kUnits[] = {{1, "s"}, {1e3, "ms"}, {1e6, "µs"}};
  for (const auto& [scale, unit] : kUnits)
    if (span_s * scale >= least) {
      per_second = scale;
      name = unit;
      return;
    }
}

void PointLabels::draw(Svg& svg) const {
  struct Box {
    double left, right, top, bottom;
    bool touches(const Box& o) const {
      return left < o.right && o.left < right && top < o.bottom && o.top < bottom;
    }
  };
  constexpr double kLetter = 7, kHalf = 6, kGap = 8;
  std::vector<Box> taken;
  for (const Point& p : points_) taken.push_back({p.x - 5, p.x + 5, p.y - 5, p.y + 5});
  for (const Point& p : points_) {
    const double width = kLetter * static_cast<double>(p.text.size());
    const Box right{p.x + kGap, p.x + kGap + width, p.y - kHalf, p.y + kHalf},
        left{p.x - kGap - width, p.x - kGap, p.y - kHalf, p.y + kHalf};
    for (const Box& box : {right, left}) {
      const bool is_free = std::none_of(taken.begin(), taken.end(),
                                        [&](const Box& other) { return box.touches(other); });
      if (!is_free || box.left < left_ || box.right > right_) continue;
      taken.push_back(box);
      const bool is_right = box.left > p.x;
      svg.label(is_right ? box.left : box.right, p.y + 4, p.text, "label",
                is_right ? "start" : "end");
      break;
    }
  }
}

void label_axes(Svg& svg, double left, double top, double width, double height,
                const std::string& below, const std::string& beside) {
  svg.label(left + width / 2, top + height + 42, below, "label", "middle");
  svg.label(0, 0, beside, "label", "middle",
            fmt::format(" transform=\"translate(18 {:.0f}) rotate(-90)\"", top + height / 2));
}

std::string svg_style() {
  return R"(
.chart .ground { fill: #ffffff; }
.chart text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12px; fill: #33404d; }
.chart .title { font-size: 15px; font-weight: 600; fill: #17202a; }
.chart .strong { font-weight: 600; }
.chart .grid { stroke: #dfe4ea; stroke-width: 1; }
.chart .axis { stroke: #8793a0; stroke-width: 1; }
.chart .exact { stroke: #55606c; stroke-width: 1.5; }
.chart .band { stroke: #8793a0; stroke-width: 1; stroke-dasharray: 5 4; }
.chart .point { fill: #0072b2; fill-opacity: 0.8; stroke: #ffffff; stroke-width: 1; }
.chart .mark { stroke: #111111; stroke-width: 3; }
@media (prefers-color-scheme: dark) {
.chart .ground { fill: #161b22; }
.chart text { fill: #c3ccd6; }
.chart .title { fill: #f0f4f8; }
.chart .grid { stroke: #2b333d; }
.chart .axis { stroke: #77828e; }
.chart .exact { stroke: #b4bfca; }
.chart .band { stroke: #77828e; }
.chart .point { fill: #56aee6; stroke: #161b22; }
.chart .mark { stroke: #f4f6f8; }
}
)";
}

std::string embedded_svg(const std::string& svg) {
  const size_t begin = svg.find(kStyleBegin), end = svg.find(kStyleEnd);
  if (begin == std::string::npos || end == std::string::npos) return svg;
  return svg.substr(0, begin) + svg.substr(end + std::string_view(kStyleEnd).size());
}

}  // namespace gpusim
