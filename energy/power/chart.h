// Power over time as an SVG that is readable on light and on dark ground.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "energy/power/sample.h"

namespace gpusim::power {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<Seconds, Watts>> points;
  bool has_line = true;  // else dots
};

struct ChartMark {  // a vertical line
  Seconds time;
  std::string label;
};

// The time axis takes s, ms or us by its length. More than 4,000 points of a line are thinned to
// their extremes.
std::string power_chart(const std::string& title, const std::vector<ChartSeries>& series,
                        const std::vector<ChartMark>& marks);

}  // namespace gpusim::power
