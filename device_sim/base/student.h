// Student's t distribution.
#pragma once
#include <cmath>
#include <cstddef>
#include <iterator>

namespace gpusim {

// Half of the two-sided 95 % interval.
inline double student_t_95(size_t degrees_of_freedom) {
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                      2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                      2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (degrees_of_freedom == 0) return INFINITY;
  return degrees_of_freedom <= std::size(kTable)
             ? kTable[degrees_of_freedom - 1]
             : 1.96 + 2.5 / static_cast<double>(degrees_of_freedom);
}

}  // namespace gpusim
