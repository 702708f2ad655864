// A study's points as a job array of Slurm: handed in by sbatch, watched by squeue.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "host/sweep/runner.h"
#include "host/sweep/tasks.h"

namespace gpusim::sweep {

// A job that `gpusim sweep --slurm` handed in, as the study's folder remembers it until it is over.
struct HandedInJob {
  std::string id, submitted;  // the time, as Slurm says it: numbers of jobs may come again
  uint32_t tasks = 0;
  bool retry = false;
  std::string session() const { return "slurm-" + id; }  // of its tasks
};
std::optional<HandedInJob> recorded_job(const std::string& folder);
// One that works, or waits to, although its `gpusim sweep` may have ended. Throws Error where Slurm
// does not tell.
std::optional<HandedInJob> job_at_work(const std::string& folder);

// Until all points are finished, the job has ended or the user stops it; then the job is cancelled.
// Adds to `result` what its tasks did. `former`: wait for that one, instead of a new one. Throws
// Error where Slurm does not take the job.
void run_slurm_job(const std::string& folder, Tasks& tasks, Workers& workers,
                   const RunnerOptions& options, const std::optional<HandedInJob>& former,
                   StudyRun& result);

}  // namespace gpusim::sweep
