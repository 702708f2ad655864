// The columns of our CSV format.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "energy/power/sample.h"

namespace gpusim::power {

struct Column {
  std::string_view name;  // with its unit
  bool is_required;
  int decimals;
  std::optional<double> (*get)(const Sample&);
  void (*set)(Sample&, double);
};

std::span<const Column> own_columns();

}  // namespace gpusim::power
