#include "device_sim/base/chart_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "device_sim/base/chart_svg.h"
#include "device_sim/base/svg.h"

namespace gpusim::page {
namespace {

// Digits of a number without zeros behind the point; from a thousand on in groups of three.
std::string trimmed(double value, int digits) {
  std::string text = fmt::format("{:.{}g}", value, digits);
  if (text.find('e') != std::string::npos && std::abs(value) >= 1)
    text = fmt::format("{:.0f}", std::strtod(text.c_str(), nullptr));
  const size_t end = std::min(text.find('.'), text.size());
  if (text.find('e') != std::string::npos) return text;
  for (size_t i = end; i > 3 && text[i - 4] != '-'; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string si(double value, const std::string& unit, int digits) {
  constexpr std::pair<double, const char*> kPrefixes[] = {
      {1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"},  {1e3, "k"},
      {1, ""},     {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}, {1e-12, "p"}};
  if (value == 0) return unit.empty() ? "0" : "0 " + unit;
  for (const auto& [scale, prefix] : kPrefixes) {
    if (std::abs(value) < scale * 0.9995 && scale > 1e-12) continue;
    if (unit.empty() && scale < 1) break;
    const std::string tail = prefix + unit;
    return trimmed(value / scale, digits) + (tail.empty() ? "" : " " + tail);
  }
  return trimmed(value, digits);
}

}  // namespace

std::string number_text(double value, const std::string& format, const std::string& unit,
                        int digits) {
  if (format == "count")
    return trimmed(value, value == std::floor(value) && std::abs(value) < 1e15 ? 15 : 6);
  if (format == "si") return si(value, unit, digits);
  if (format == "percent") return trimmed(100 * value, digits) + " %";
  return trimmed(value, digits) + (unit.empty() ? "" : " " + unit);
}

Scale::Scale(const nlohmann::ordered_json& axis, std::vector<double> values, double from, double to,
             bool has_margin)
    : from_(from),
      to_(to),
      format_(axis.value("format", "number")),
      unit_(axis.value("unit", "")),
      label_(axis.value("label", "")) {
  const std::string scale = axis.value("scale", "linear");
  is_log_ = scale == "log2" || scale == "log10";
  base_ = scale == "log2" ? 2 : 10;
  std::erase_if(values, [&](double v) { return !std::isfinite(v) || (is_log_ && v <= 0); });
  if (values.empty()) values.push_back(1);
  std::sort(values.begin(), values.end());
  // Less than a decade is shown from zero, evenly, as in page.js.
  const bool is_short =
      scale == "log10" && values.front() > 0 && std::log10(values.back() / values.front()) < 0.75;
  if (is_short) is_log_ = false;
  if (is_log_ && !label_.empty()) label_ += " (log scale)";
  low_ = is_short ? 0 : axis.value("min", values.front());
  high_ = axis.value("max", values.back());
  if (is_log_) {
    low_ = std::log(low_) / std::log(base_);
    high_ = std::log(high_) / std::log(base_);
    if (high_ - low_ < 1e-9) low_ -= 0.5, high_ += 0.5;
    const double margin = has_margin ? 0.04 * (high_ - low_) : 0;
    low_ -= margin;
    high_ += margin;
    if (axis.contains("noun")) {
      values.erase(std::unique(values.begin(), values.end()), values.end());
      ticks_ = values;
    } else {
      const bool few = high_ - low_ < 2.5 && base_ == 10;
      for (int p = static_cast<int>(std::floor(low_)); p <= std::ceil(high_); ++p)
        for (const int m : {1, 2, 5}) {
          const double v = m * std::pow(base_, p);
          if ((m == 1 || few) && place(v) >= low_ - 1e-9 && place(v) <= high_ + 1e-9)
            ticks_.push_back(v);
        }
    }
    return;
  }
  if (!axis.contains("min") && low_ > 0 && low_ < 0.6 * high_) low_ = 0;
  if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(high_))) high_ = low_ + 1;
  const double step = nice_step(high_ - low_, 5);
  if (!axis.contains("max")) high_ = std::ceil(high_ / step - 1e-9) * step;
  if (!axis.contains("min")) low_ = std::floor(low_ / step + 1e-9) * step;
  // Adding 0.0 makes 0 of -0.
  for (double i = std::ceil(low_ / step - 1e-9) + 0.0; i * step <= high_ + step * 1e-6; ++i)
    ticks_.push_back(i * step);
}

double Scale::place(double value) const {
  return is_log_ ? std::log(value) / std::log(base_) : value;
}

double Scale::at(double value) const {
  return from_ + (to_ - from_) * (place(value) - low_) / (high_ - low_);
}

bool Scale::has(double value) const { return std::isfinite(value) && (!is_log_ || value > 0); }

std::string Scale::text(double value) const {
  if (format_ == "count" && value >= 1e6) return number_text(value, "si", "");
  return number_text(value, format_ == "ratio" ? "number" : format_, unit_);
}

std::vector<double> Scale::ticks(size_t most) const {
  const size_t every = (ticks_.size() + most - 1) / std::max<size_t>(most, 1);
  std::vector<double> some;
  for (size_t i = 0; i < ticks_.size(); i += std::max<size_t>(every, 1)) some.push_back(ticks_[i]);
  return some;
}

}  // namespace gpusim::page
