// Axes of charts in documents: where values lie, and which values are written beside them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpusim::page {

class Scale {
 public:
  // `axis` as page.h describes it. `values`: all that shall be seen. From `from` to `to` in pixels.
  Scale(const nlohmann::ordered_json& axis, std::vector<double> values, double from, double to,
        bool has_margin);
  double at(double value) const;
  bool has(double value) const;
  std::string text(double value) const;
  // At most `most` of them.
  std::vector<double> ticks(size_t most) const;
  const std::string& label() const { return label_; }

 private:
  double place(double value) const;
  bool is_log_ = false;
  double base_ = 10, low_ = 0, high_ = 1, from_, to_;
  std::string format_, unit_, label_;
  std::vector<double> ticks_;
};

}  // namespace gpusim::page
