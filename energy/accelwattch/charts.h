// Charts as SVG: readable on light and on dark ground, without scripts.
#pragma once
#include <string>
#include <vector>

#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/sheet.h"

namespace gpusim::accelwattch {

struct Segment {
  std::string label;
  std::vector<double> values;  // one per bar
};

// Components of a sheet in the groups that charts show: known ones by ComponentInfo::group, others
// by themselves, the smallest together as "Other". What the components miss of model_total_W is a
// group, too. Biggest first.
std::vector<Segment> grouped_components(const Sheet& sheet);

// Modelled over measured power, a point per kernel; the diagonal, and 10 % to its sides.
std::string correlation_chart(const Sheet& sheet, const Accuracy& accuracy,
                              const std::string& title);
// A stacked bar per kernel and its measured power as a mark.
std::string component_chart(const Sheet& sheet, const std::string& title);

struct TimeSeries {
  std::vector<double> start_s, end_s;
  std::vector<Segment> watts;  // one value per slice
};
// Stacked power over time.
std::string time_chart(const TimeSeries& series, const std::string& title);

}  // namespace gpusim::accelwattch
