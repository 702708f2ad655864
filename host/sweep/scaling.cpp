#include "host/sweep/scaling.h"

#include <algorithm>
#include <cmath>

#include "device_sim/base/student.h"

namespace gpusim::sweep {
namespace {

// s of y = s a, all weighted: the one unknown of both laws once they are brought into this form.
struct Sample {
  double a, y, weight;
  double law;  // what the deviation is relative to
};

std::optional<SerialShare> fit(const std::vector<Sample>& samples) {
  double aa = 0, ay = 0;
  size_t useful = 0;
  for (const Sample& s : samples) {
    aa += s.weight * s.a * s.a;
    ay += s.weight * s.a * s.y;
    useful += s.a != 0;
  }
  if (useful < 2 || aa <= 0) return std::nullopt;
  SerialShare result;
  result.points = useful;
  const double s_best = ay / aa;
  result.share = std::clamp(s_best, 0.0, 1.0);
  double residuals = 0;
  for (const Sample& s : samples) {
    const double r = s.y - result.share * s.a;
    residuals += s.weight * r * r;
  }
  result.deviation = std::sqrt(residuals / static_cast<double>(useful));
  result.uncertainty =
      student_t_95(useful - 1) * std::sqrt(residuals / static_cast<double>(useful - 1) / aa);
  return result;
}

std::vector<SpeedUp> speed_ups(const std::vector<WorkPoint>& points, bool weak) {
  std::vector<SpeedUp> curve;
  const WorkPoint* first = nullptr;
  for (const WorkPoint& p : points) {
    if (p.work <= 0 || p.cores == 0) continue;
    if (!first) first = &p;
    const double factor = weak ? p.cores : first->cores;
    const double speed_up = factor * first->work / p.work;
    curve.push_back({p.cores, speed_up, speed_up / p.cores});
  }
  return curve;
}

}  // namespace

std::vector<SpeedUp> strong_speed_ups(const std::vector<WorkPoint>& points) {
  return speed_ups(points, false);
}
std::vector<SpeedUp> weak_speed_ups(const std::vector<WorkPoint>& points) {
  return speed_ups(points, true);
}

std::optional<SerialShare> fit_amdahl(const std::vector<SpeedUp>& curve) {
  std::vector<Sample> samples;  // 1/S - 1/n = s (1 - 1/n), relative to 1/S
  for (const SpeedUp& p : curve) {
    if (p.speed_up <= 0) continue;
    const double n = p.cores, inverse = 1 / p.speed_up;
    samples.push_back({1 - 1 / n, inverse - 1 / n, 1 / (inverse * inverse)});
  }
  return fit(samples);
}

std::optional<SerialShare> fit_gustafson(const std::vector<SpeedUp>& curve) {
  std::vector<Sample> samples;  // n - S = s (n - 1), relative to n: S may be close to nothing
  for (const SpeedUp& p : curve) {
    const double n = p.cores;
    samples.push_back({n - 1, n - p.speed_up, 1 / (n * n)});
  }
  return fit(samples);
}

double amdahl(double s, double n) { return 1 / (s + (1 - s) / n); }
double gustafson(double s, double n) { return n - s * (n - 1); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace gpusim::sweep
