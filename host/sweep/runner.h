// Runs the points of a study as processes of `gpusim run`, several at once, and keeps each result
// in a file of its own as soon as there is one.
#pragma once
#include <string>
#include <vector>

#include "host/sweep/point.h"

namespace gpusim::sweep {

struct RunnerOptions {
  bool quiet = false;
  bool retry = false;    // failed points, too
  bool restart = false;  // forget what the folder holds
};

struct StudyRun {
  std::vector<Point> points;  // all that are finished, in the study's order
  size_t wanted = 0, ran = 0, kept = 0, failed = 0;
  bool interrupted = false;
};

// Takes up the study in `folder` where it was left, or begins one. Throws Error where the
// folder holds something else: another study's programs, arguments or simulator.
StudyRun run_study(const Study& study, const std::string& folder, const std::string& version,
                   const RunnerOptions& options);

// What a folder holds, without running anything.
struct StoredStudy {
  Study study;
  Json simulator, machine;
  std::string begun;
  std::vector<Point> points;
};
StoredStudy load_stored_study(const std::string& folder);

}  // namespace gpusim::sweep
