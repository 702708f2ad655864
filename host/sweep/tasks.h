// The points of a study that one process sees: what is finished, what others run, what is free.
#pragma once
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/sweep/claims.h"
#include "host/sweep/point.h"
#include "host/sweep/workers.h"

namespace gpusim::sweep {

struct Task {
  PointId id;
  Json identity;
  std::string name;
  uint32_t threads = 1;  // of the host, that it keeps busy
  std::optional<Point> done;
  std::string old_failure;  // when the failed run began that is to be repeated
  uint32_t finished = 0;    // claims up to this generation are of runs that ended
  uint32_t last = 0;        // the last claim that is known
};

class Tasks {
 public:
  // `retry`: points that have failed are not finished, but those that failed in this session.
  Tasks(const Study& study, const std::string& folder, const Json& simulator, Workers& workers,
        bool retry);

  std::vector<Task>& list() { return list_; }
  const std::vector<Task>& list() const { return list_; }

  // A point that is ours from now on: free, or of a process that is no more. Of points with several
  // host threads only those that `fits`.
  template <class Fits>
  std::optional<size_t> take(Fits fits);
  void give_back(const Task& task) { claims_.give_back(task.name, task.last); }
  void finish(size_t index, Point point);
  // Points that others have finished meanwhile, unless that was looked at just now.
  void refresh(bool now = false);

  size_t unfinished() const { return unfinished_; }
  // Whether each unfinished point is run by a process that lives.
  bool all_are_in_hands();
  // Whether this process is the one of its session that reports.
  bool takes_report();

 private:
  enum class State { kFree, kHeld, kUnclear };
  State state(Task& task);
  bool take(Task& task);
  bool load(Task& task);
  void note_claims();
  void fail_poison(Task& task, uint32_t lost);
  static constexpr uint32_t kMostLost = 3;  // processes that a point may take with it

  const std::string folder_;
  Workers& workers_;
  Claims claims_;
  std::vector<Task> list_;
  std::vector<size_t> order_;  // in which they are taken
  size_t unfinished_ = 0;
  using Clock = std::chrono::steady_clock;
  static constexpr auto kLook = std::chrono::seconds(1);  // between looks at what others do
  Clock::time_point next_look_ = {}, next_claims_ = {};
};

template <class Fits>
std::optional<size_t> Tasks::take(Fits fits) {
  Clock::time_point start;
  for (const bool from_others : {false, true}) {
    if (from_others) {
      start = Clock::now();
      if (start < next_claims_) return std::nullopt;
      note_claims();
    }
    for (const size_t index : order_) {
      Task& task = list_[index];
      if (task.done || !fits(task)) continue;
      if (from_others ? state(task) != State::kFree : task.last > task.finished) continue;
      if (take(task)) return index;
    }
  }
  // Where many are at work, or the file system is slow, that took long: then less often.
  const Clock::time_point now = Clock::now();
  next_claims_ = now + std::max<Clock::duration>(kLook, 20 * (now - start));
  return std::nullopt;
}

}  // namespace gpusim::sweep
