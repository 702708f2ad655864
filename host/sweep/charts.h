// Charts of a study's curves, as descriptions for device_sim/base/page.h.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/base/page.h"
#include "host/sweep/results.h"

namespace gpusim::sweep {

using page::Page;
using page::rounded;
using Views = std::vector<std::pair<std::string, Json>>;

Json cores_axis();
// Of a curve's row; nothing where it is not known. Low and high are optional, too.
struct Reading {
  double value = 0;
  std::optional<double> low, high;
};
using Read = std::function<std::optional<Reading>(const Curve&, const Row&)>;
// One series per curve that has at least one value.
Json lines_chart(const std::vector<Curve>& curves, const std::string& title, Json y_axis,
                 const Read& read, const std::string& note = "");
bool any_value(const std::vector<Curve>& curves, const Read& read);

const SpeedUp* speed_up_of(const Curve& curve, const Row& row);
// "integer arithmetic"; "memory" where no point knows what is off the chip.
std::string class_title(const std::vector<Curve>& curves, size_t c);
bool uses_class(const std::vector<Curve>& curves, size_t c);

Json class_chart(const std::vector<Curve>& curves, const Curve& curve);
Json load_chart(const Curve& curve);
// `t`: number of the target.
Json core_energy_chart(const Curve& curve, const energy::Target& target);
Json class_energy_chart(const std::vector<Curve>& curves, const Curve& curve, size_t t);
Json fit_chart(const Curve& curve);

// --- What a chip did (chip_charts.cpp)

bool any_chip(const std::vector<Curve>& curves);
// A section with cycles, stacks and energy, over keys of its description and over cores.
void add_chips(Page& page, const Results& results);

}  // namespace gpusim::sweep
