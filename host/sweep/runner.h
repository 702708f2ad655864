// Runs the points of a study as processes of `gpusim run`, several at once, and keeps each result
// in a file of its own as soon as there is one. Other processes, on this machine or on others, may
// work on the same study (docs/many-machines.md).
#pragma once
#include <string>
#include <vector>

#include "host/sweep/point.h"
#include "host/sweep/study_folder.h"

namespace gpusim::sweep {

struct RunnerOptions {
  bool quiet = false;
  bool retry = false;               // failed points, too
  bool restart = false;             // forget what the folder holds
  std::string devices;              // GPUs that points are shared out to; empty: nobody says
  uint32_t slurm_tasks = 0;         // hand the points to a job array of so many tasks
  std::vector<std::string> sbatch;  // options of that job
};

struct StudyRun {
  std::vector<Point> points;  // all that are finished, in the study's order
  // Points: of the study, run by this process, there before, failed in all, failed here, and those
  // that are not finished yet.
  size_t wanted = 0, ran = 0, kept = 0, failed = 0, failed_here = 0, left = 0;
  bool interrupted = false;
  bool reports = true;                // of the processes that work on it, this one writes results
  bool others_wait = false;           // an exit status other than 0 would end them
  std::vector<std::string> problems;  // of a job's tasks
};

// Takes up the study in `folder` where it was left, or begins one; under mpirun and in a job of
// Slurm together with others. Throws Error where the folder holds something else: another study's
// programs, arguments or simulator.
StudyRun run_study(const Study& study, const std::string& folder, const std::string& version,
                   const RunnerOptions& options);

// Helps those that work on the study in `folder`, or goes on where they stopped.
StudyRun join_study(const std::string& folder, const std::string& version,
                    const RunnerOptions& options);

}  // namespace gpusim::sweep
