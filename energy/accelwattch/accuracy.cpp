#include "energy/accelwattch/accuracy.h"

#include <cmath>

namespace gpusim::accelwattch {

double percent_error(Watts model, Watts measured) { return (model - measured) / measured * 100; }

Accuracy accuracy(std::span<const Watts> model, std::span<const Watts> measured) {
  Accuracy a;
  a.kernels = model.size();
  if (a.kernels == 0) return a;
  const double n = static_cast<double>(a.kernels);
  double squares = 0, mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < a.kernels; ++i) {
    const double error = percent_error(model[i], measured[i]), size = std::abs(error);
    a.mape += size / n;
    a.bias += error / n;
    a.within_10 += size < 10;
    if (size > a.largest) {
      a.largest = size;
      a.largest_at = i;
    }
    mean_x += measured[i].value() / n;
    mean_y += model[i].value() / n;
  }
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < a.kernels; ++i) {
    const double off = std::abs(percent_error(model[i], measured[i])) - a.mape;
    squares += off * off;
    const double x = measured[i].value() - mean_x, y = model[i].value() - mean_y;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  constexpr double kNormal95 = 1.959963984540054;
  if (a.kernels > 1) a.confidence95 = kNormal95 * std::sqrt(squares / n) / std::sqrt(n);
  // Rounding leaves a little variance in constants.
  const double floor_x = 1e-24 * n * mean_x * mean_x, floor_y = 1e-24 * n * mean_y * mean_y;
  if (xx > floor_x && yy > floor_y) a.pearson_r = xy / std::sqrt(xx * yy);
  return a;
}

Accuracy accuracy(const Sheet& sheet) {
  std::vector<Watts> model, measured;
  for (const SheetKernel& k : sheet.kernels) {
    model.push_back(k.model);
    measured.push_back(k.measured);
  }
  return accuracy(model, measured);
}

}  // namespace gpusim::accelwattch
