// How well a model's power agrees with measured power.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "energy/accelwattch/sheet.h"

namespace gpusim::accelwattch {

struct Accuracy {
  size_t kernels = 0;
  double mape = 0;                     // mean absolute error, percent of the measured power
  std::optional<double> confidence95;  // half width of its interval; none for a single kernel
  double bias = 0;                     // mean signed error, percent
  double largest = 0;                  // absolute, percent
  size_t largest_at = 0;               // kernel
  size_t within_10 = 0;                // kernels with less than 10 % error
  std::optional<double> pearson_r;     // none if either side is constant
};

double percent_error(Watts model, Watts measured);

// The interval is the normal one with the population's deviation, 1.96 sigma / sqrt(n): what the
// published figures are (paper 6.2, and its sheets).
Accuracy accuracy(std::span<const Watts> model, std::span<const Watts> measured);
Accuracy accuracy(const Sheet& sheet);

}  // namespace gpusim::accelwattch
