#include <algorithm>
#include <cmath>

#include "energy/power/comparison.h"

namespace gpusim::power {
namespace {

constexpr double kLeastWindow = 0.002, kMostWindow = 2;

// Of a window and the middle that it has before an update: what moves the one moves the other
// little.
struct Point {
  double window = 0, middle = 0, rms = 1e300;
  double offset() const { return middle + window / 2; }  // of the clocks
};

class WindowFit {
 public:
  WindowFit(const Comparison& compare, double most_offset)
      : compare_(compare), readings_(compare.readings()), most_offset_(most_offset) {}

  Line line(const Point& p) const {
    return fit_line(compare_.means(Seconds(p.offset()), Seconds(p.window)), readings_);
  }
  Point at(double window, double offset) const {
    Point p{window, offset - window / 2};
    p.rms = line(p).rms;
    return p;
  }
  // A grid fine enough for loads that switch every ten milliseconds, then ever finer steps from its
  // best places: windows that differ by a period of the load look alike.
  void search() {
    for (double w = kLeastWindow; w < kMostWindow; w += std::clamp(0.12 * w, 0.0005, 0.007)) {
      Point best;
      const double step = std::clamp(w / 3, 0.001, 0.004);
      for (double offset = -most_offset_; offset <= most_offset_; offset += step)
        if (const Point p = at(w, offset); p.rms < best.rms) best = p;
      tried_.push_back(best);
    }
    std::vector<Point> candidates;
    for (size_t i = 0; i < tried_.size(); ++i) {
      const bool is_least = (i == 0 || tried_[i].rms <= tried_[i - 1].rms) &&
                            (i + 1 == tried_.size() || tried_[i].rms <= tried_[i + 1].rms);
      if (is_least) candidates.push_back(tried_[i]);
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Point& a, const Point& b) { return a.rms < b.rms; });
    candidates.resize(std::min<size_t>(candidates.size(), 6));
    for (const Point& p : candidates) refine(p);
    best_ = *std::min_element(tried_.begin(), tried_.end(),
                              [](const Point& a, const Point& b) { return a.rms < b.rms; });
    take_nearest_clocks();
    for (const double direction : {-1.0, 1.0}) walk(direction);
  }
  const Point& best() const { return best_; }
  // Of the windows that fit hardly worse.
  std::pair<double, double> range() const {
    std::pair<double, double> range(best_.window, best_.window);
    for (const Point& p : tried_) {
      if (!is_as_good(p)) continue;
      range.first = std::min(range.first, p.window);
      range.second = std::max(range.second, p.window);
    }
    return range;
  }

 private:
  bool is_allowed(const Point& p) const {
    return p.window >= kLeastWindow && p.window <= kMostWindow &&
           std::abs(p.offset()) <= most_offset_;
  }
  bool is_as_good(const Point& p) const { return p.rms <= 1.1 * best_.rms; }

  void refine(Point p) {
    for (double dw = 0.004, dm = 0.002; dw > 2e-5; dw /= 2, dm /= 2)
      for (bool moved = true; moved;) {
        moved = false;
        for (const auto& [w, m] : {std::pair(dw, 0.0),
                                   {-dw, 0.0},
                                   {0.0, dm},
                                   {0.0, -dm},
                                   {dw, dm},
                                   {-dw, -dm},
                                   {dw, -dm},
                                   {-dw, dm}}) {
          const Point next{p.window + w, p.middle + m};
          if (!is_allowed(next)) continue;
          if (const Point q = at(next.window, next.offset()); q.rms < p.rms) p = q, moved = true;
        }
      }
    tried_.push_back(p);
  }
  // A regular load looks the same a period later: of clocks that fit as well, those least apart.
  void take_nearest_clocks() {
    const double window = best_.window;
    const size_t before = tried_.size();
    constexpr double kStep = 0.002;
    Point last = at(window, -most_offset_), here = at(window, -most_offset_ + kStep);
    for (double offset = -most_offset_ + 2 * kStep; offset <= most_offset_; offset += kStep) {
      const Point next = at(window, offset);
      if (here.rms <= last.rms && here.rms <= next.rms && here.rms < 3 * best_.rms) refine(here);
      last = here;
      here = next;
    }
    for (size_t i = before; i < tried_.size(); ++i) {
      const Point& p = tried_[i];
      if (is_as_good(p) && std::abs(p.offset()) < std::abs(best_.offset())) best_ = p;
    }
  }
  // Away from the best window, with the middle following, until it fits worse.
  void walk(double direction) {
    const double step = std::max(0.0002, 0.01 * best_.window);
    Point p = best_;
    for (int i = 0; i < 200 && is_as_good(p); ++i) {
      tried_.push_back(p);
      const Point next{p.window + direction * step, p.middle};
      if (!is_allowed(next)) return;
      p = at(next.window, next.offset());
      for (double dm = step / 2; dm > 1e-5; dm /= 2)
        for (const double m : {-dm, dm})
          if (const Point q = at(p.window, p.offset() + m); q.rms < p.rms) p = q;
    }
  }

  const Comparison& compare_;
  const std::vector<double> readings_;
  const double most_offset_;
  std::vector<Point> tried_;
  Point best_;
};

}  // namespace

ModelFit fit_window(const std::vector<Sample>& updates, const Trace& reference, Seconds period,
                    Seconds most_offset) {
  constexpr size_t kMostUsed = 1000;  // the search looks at some 70,000 places
  ModelFit fit;
  fit.rms = Watts(1e300);
  // A sensor whose updates jitter is better served by the times as they were seen.
  for (const bool is_even : {false, true}) {
    const std::vector<Sample> moved = is_even ? with_even_times(updates, period) : updates;
    const Comparison compare(moved, reference, period, most_offset, kMostUsed);
    if (compare.used().size() < 10) continue;
    WindowFit search(compare, most_offset.value());
    search.search();
    const Point& best = search.best();
    const Line line = search.line(best);
    const Watts rms(line.rms / line.gain);
    if (rms >= fit.rms) continue;
    const auto [least, most] = search.range();
    const std::vector<double> truth = compare.means(Seconds(best.offset()), Seconds(best.window));
    double squares = 0, changes = 0;
    for (size_t n = 0; n < truth.size(); ++n) {
      const Sample* update = &moved[compare.used()[n]];
      if (update->power == (update - 1)->power) continue;
      const double miss = (update->power.value() - line.offset) / line.gain - truth[n];
      squares += miss * miss, changes += 1;
    }
    fit = {.window = Seconds(best.window),
           .clock_offset = Seconds(best.offset()),
           .gain = line.gain,
           .offset = Watts(line.offset),
           .rms = rms,
           .window_least = Seconds(least),
           .window_most = Seconds(most),
           .new_rms = Watts(std::sqrt(squares / std::max(changes, 1.0)))};
  }
  return fit;
}

}  // namespace gpusim::power
