// Pictures as SVG: readable on light and on dark ground, without scripts.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace gpusim {

// Of all charts, those of pages (assets/page.js), too: Okabe and Ito's, told apart with any colour
// vision.
inline constexpr const char* kChartColours[] = {"#0072b2", "#d55e00", "#009e73", "#b8548e",
                                                "#c98a00", "#3d9bd1", "#4d4d4d", "#8a7a00"};

class Svg {
 public:
  Svg(double width, double height, const std::string& title);
  // `kind`, a class of svg_style(): "axis", "grid", "exact", "band", "mark"; "title", "strong".
  void line(double x1, double y1, double x2, double y2, const char* kind);
  // `more`: further attributes.
  void label(double x, double y, const std::string& text, const char* kind = "label",
             const char* anchor = "start", const std::string& more = {});
  // `tip` is shown where the mouse is.
  void bar(double x, double y, double width, double height, const std::string& colour,
           const std::string& tip);
  void point(double x, double y, const std::string& tip);
  void raw(const std::string& text) { text_ += text; }
  std::string finish() { return std::move(text_) + "</svg>\n"; }

 private:
  std::string text_;
};

// 1, 2 or 5 times a power of ten, so that about `count` steps make `range`.
double nice_step(double range, int count);

// Values from 0 to `top`, upwards in steps.
struct ValueAxis {
  // Up to `most` with some room above it (1.02), in about `count` steps.
  ValueAxis(double most, double room, int count);
  // Lines across a field, with their values on its left.
  void draw(Svg& svg, double left, double top_y, double width, double height) const;
  double step, top;
};

// In what unit times of an axis are written: the greatest in which `span_s` is `least` or more.
struct TimeUnit {
  TimeUnit(double span_s, double least);
  double per_second;
  const char* name;
};

// Names beside points, where they touch neither points nor each other; others have only their tips.
class PointLabels {
 public:
  PointLabels(double left, double right) : left_(left), right_(right) {}
  void add(double x, double y, const std::string& text) { points_.push_back({x, y, text}); }
  void draw(Svg& svg) const;

 private:
  struct Point {
    double x, y;
    std::string text;
  };
  double left_, right_;
  std::vector<Point> points_;
};

// Names of a field's axes.
void label_axes(Svg& svg, double left, double top, double width, double height,
                const std::string& below, const std::string& beside);

std::string svg_style();
// Without its style, to stand in a page that has svg_style().
std::string embedded_svg(const std::string& svg);

}  // namespace gpusim
