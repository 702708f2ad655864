#include <algorithm>
#include <cmath>

#include "energy/power/calibrate.h"

namespace gpusim::power {
namespace {

struct Exponential {
  double asymptote = 0, amplitude = 0, tau = 0, rms = 1e300;
};

// Least squares of A + K exp(-(t - t0) / tau) over updates [first, last] for one tau.
Exponential fit_for(const std::vector<Sample>& u, size_t first, size_t last, double tau) {
  double n = 0, e1 = 0, e2 = 0, y1 = 0, ey = 0;
  for (size_t i = first; i <= last; ++i) {
    const double e = std::exp(-(u[i].time - u[first].time).value() / tau);
    const double y = u[i].power.value();
    n += 1;
    e1 += e;
    e2 += e * e;
    y1 += y;
    ey += e * y;
  }
  const double d = n * e2 - e1 * e1;
  Exponential f{.tau = tau};
  if (std::abs(d) < 1e-12 * n * n) return f;
  f.amplitude = (n * ey - e1 * y1) / d;
  f.asymptote = (y1 - f.amplitude * e1) / n;
  double squares = 0;
  for (size_t i = first; i <= last; ++i) {
    const double e = std::exp(-(u[i].time - u[first].time).value() / tau);
    const double miss = f.asymptote + f.amplitude * e - u[i].power.value();
    squares += miss * miss;
  }
  f.rms = std::sqrt(squares / n);
  return f;
}

Exponential fit_exponential(const std::vector<Sample>& u, size_t first, size_t last) {
  const double length = (u[last].time - u[first].time).value();
  const double step = length / static_cast<double>(last - first);
  double low = std::log(0.2 * step), high = std::log(3 * length);
  Exponential best;
  double best_at = low;
  constexpr int kGrid = 40;
  for (int i = 0; i <= kGrid; ++i) {
    const double at = low + (high - low) * i / kGrid;
    const Exponential f = fit_for(u, first, last, std::exp(at));
    if (f.rms < best.rms) best = f, best_at = at;
  }
  double width = (high - low) / kGrid;
  for (int i = 0; i < 40; ++i, width *= 0.7)
    for (const double at : {best_at - width, best_at + width}) {
      const Exponential f = fit_for(u, first, last, std::exp(at));
      if (f.rms < best.rms) best = f, best_at = at;
    }
  return best;
}

// Of readings that do not move: the median difference between neighbours.
double noise_of(const std::vector<Sample>& u) {
  std::vector<double> steps;
  for (size_t i = 1; i < u.size(); ++i)
    steps.push_back(std::abs((u[i].power - u[i - 1].power).value()));
  const auto middle = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

// An asymptote far from all readings is a guess.
bool saw_the_end(const Exponential& f, double reached, double before) {
  return std::abs(reached - f.asymptote) < 0.2 * std::abs(f.asymptote - before);
}

}  // namespace

std::vector<StepFit> fit_steps(const std::vector<Sample>& u) {
  std::vector<StepFit> steps;
  if (u.size() < 6) return steps;
  const auto [low, high] = std::minmax_element(
      u.begin(), u.end(), [](const Sample& a, const Sample& b) { return a.power < b.power; });
  const double range = (high->power - low->power).value();
  const double noise = noise_of(u), least = 0.1 * range;
  if (range <= 0 || least < 5 * noise) return steps;

  // Where readings move the same way for a tenth of the range: [first, last], first is before it.
  struct Run {
    size_t first, last;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i + 1 < u.size();) {
    const double first_step = (u[i + 1].power - u[i].power).value();
    if (std::abs(first_step) <= std::max(3 * noise, 0.002 * range)) {
      ++i;
      continue;
    }
    const double sign = first_step > 0 ? 1 : -1;
    size_t last = i + 1;
    while (last + 1 < u.size() &&
           sign * (u[last + 1].power - u[last].power).value() > -3 * noise - 0.002 * range) {
      ++last;
    }
    if (sign * (u[last].power - u[i].power).value() >= least) runs.push_back({i, last});
    i = last;
  }

  for (size_t r = 0; r < runs.size(); ++r) {
    const size_t first = runs[r].first + 1;
    const size_t end = r + 1 < runs.size() ? runs[r + 1].first : u.size() - 1;
    const double before = u[runs[r].first].power.value();
    // The most readings that one exponential fits: later ones may belong to another step.
    std::optional<Exponential> best;
    size_t best_last = 0;
    for (const double part : {0.003, 0.012}) {
      for (size_t count = 5; first + count - 1 <= end;
           count = std::max(count + 1, count + count / 8)) {
        const size_t last = first + count - 1;
        const Exponential f = fit_exponential(u, first, last);
        if (f.rms > std::max(2 * noise, part * std::abs(f.asymptote - before))) continue;
        best = f;
        best_last = last;
      }
      if (best && saw_the_end(*best, u[best_last].power.value(), before)) break;
    }
    // One reading at the new level at once: no smoothing that could be seen.
    StepFit fit{.begin = u[first].time, .from = Watts(before)};
    if (best) {
      const double change = best->asymptote - before;
      // A capacitor that has seen the step for one period at most has most of the way before it;
      // else what follows is something slower: a die that warms up.
      const double period =
          (u[best_last].time - u[first].time).value() / static_cast<double>(best_last - first);
      const bool is_flat =
          std::abs(best->amplitude) < 3 * noise || best->tau < 0.3 * period ||
          std::abs(best->amplitude) < 0.8 * std::exp(-period / best->tau) * std::abs(change);
      if (!is_flat && saw_the_end(*best, u[best_last].power.value(), before)) {
        fit.end = u[best_last].time;
        fit.to = Watts(best->asymptote);
        fit.capacitance = Seconds(best->tau);
        fit.rms = Watts(best->rms);
        fit.updates = best_last - first + 1;
        steps.push_back(fit);
        continue;
      }
    }
    // From the last reading of the old level to the first of the new one.
    const double to = u[runs[r].last].power.value();
    size_t arrived = first;
    while (arrived < runs[r].last && std::abs(u[arrived].power.value() - to) >
                                         std::max(3 * noise, 0.05 * std::abs(to - before)))
      ++arrived;
    fit.is_ramp = true;
    fit.end = u[arrived].time;
    fit.to = Watts(to);
    fit.ramp = u[arrived].time - u[runs[r].first].time;
    fit.updates = arrived - first + 1;
    steps.push_back(fit);
  }
  return steps;
}

Seconds capacitance_for(Slope slope, Seconds tau, Seconds period) {
  const double x = period / tau;
  if (!(tau > Seconds(0)) || !(x > 1e-6)) return tau;
  if (x > 300) return Seconds(0);
  return slope == Slope::kBackward ? period / std::expm1(x) : period / std::sinh(x);
}

}  // namespace gpusim::power
