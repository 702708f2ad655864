// A study's points as a job array of Slurm: handed in by sbatch, watched by squeue.
#pragma once
#include <string>

#include "host/sweep/runner.h"
#include "host/sweep/tasks.h"

namespace gpusim::sweep {

// Until all points are finished, the job has ended or the user stops it; then the job is cancelled.
// Adds to `result` what its tasks did. Throws Error where Slurm does not take the job.
void run_slurm_job(const std::string& folder, Tasks& tasks, Workers& workers,
                   const RunnerOptions& options, StudyRun& result);

}  // namespace gpusim::sweep
