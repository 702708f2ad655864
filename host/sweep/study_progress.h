// How far a study is, on a terminal: a bar, what runs now, and the time that is left.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "host/sweep/point.h"

namespace gpusim::sweep {

class StudyProgress {
 public:
  // Shows nothing unless standard error is a terminal and `wanted`.
  explicit StudyProgress(bool wanted);
  ~StudyProgress() { clear(); }
  StudyProgress(const StudyProgress&) = delete;
  StudyProgress& operator=(const StudyProgress&) = delete;

  bool is_due() const;
  void show(size_t done, size_t wanted, size_t failed, const std::vector<PointId>& waiting,
            const std::vector<PointId>& running, const std::vector<double>& so_far);
  void say(const std::string& line);  // above the bar; without a terminal, too
  void clear();

  // How long a point took: others of the study are expected to take as long as the one most like
  // them.
  void add_known(const PointId& id, double seconds);
  double expected(const PointId& id) const;  // negative: nothing is known yet

 private:
  struct Known {
    const Case* one;
    std::string backend;
    uint32_t cores;
    double seconds;
  };
  using Clock = std::chrono::steady_clock;
  bool wanted_, enabled_, shown_ = false;
  Clock::time_point next_ = Clock::now();
  std::vector<Known> known_;
};

std::string duration_text(double seconds);  // "2 min 10 s"

}  // namespace gpusim::sweep
