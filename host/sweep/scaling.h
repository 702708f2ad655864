// What curves say: speed-up, efficiency, and the share of the work that does not spread over cores.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace gpusim::sweep {

// How long the busiest core of a run took, in any unit: instructions or cycles.
struct WorkPoint {
  uint32_t cores = 0;
  double work = 0;
};

// Relative to the run with the fewest cores (n0), which is taken to scale perfectly up to there: so
// the speed-up there is n0.
struct SpeedUp {
  uint32_t cores = 0;
  double speed_up = 0;    // strong: n0 W(n0) / W(n); weak (scaled): n W(n0) / W(n)
  double efficiency = 0;  // speed-up / cores
};
// `points` in rising order of cores. Those without work are left out.
std::vector<SpeedUp> strong_speed_ups(const std::vector<WorkPoint>& points);
std::vector<SpeedUp> weak_speed_ups(const std::vector<WorkPoint>& points);

// Amdahl's law for strong scaling, 1/S = s + (1-s)/n; Gustafson's for weak, S = n - s (n-1). Fitted
// by least squares of relative deviations of 1/S (or S), so that a point on many cores counts as
// much as one on few.
struct SerialShare {
  double share = 0;        // s, from 0 to 1
  double uncertainty = 0;  // half the width of its 95 % confidence interval, from the residuals
  double deviation = 0;    // root mean square of relative deviations from the law
  size_t points = 0;       // beside the one that all are relative to
};
// None with fewer than two points beside n = 1.
std::optional<SerialShare> fit_amdahl(const std::vector<SpeedUp>& curve);
std::optional<SerialShare> fit_gustafson(const std::vector<SpeedUp>& curve);

double amdahl(double serial_share, double cores);     // speed-up
double gustafson(double serial_share, double cores);  // scaled speed-up

double median(std::vector<double> values);  // 0 of none

}  // namespace gpusim::sweep
