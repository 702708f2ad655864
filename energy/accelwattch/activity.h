// What kernels did, from files: counters by CSV, a profiler's export, our own tallies.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "device_sim/base/csv.h"
#include "energy/accelwattch/model.h"

namespace gpusim::accelwattch {

struct ActivityFile {
  std::vector<KernelActivity> kernels;
  bool is_sliced = false;  // rows are slices of time, in order
  std::vector<std::string> notes;
};

// How a CSV file without units of its own is read, and what tallies leave open.
struct ActivityOptions {
  std::optional<Hertz> clock;               // the model's, if not given
  bool voltage_follows_clock = false;       // V = clock / the model's clock
  std::optional<double> lanes, active_sms;  // where a file does not say
  // Of tallies only: time is not simulated.
  double ipc = 2;  // warp instructions per SM and cycle
  std::optional<Seconds> seconds;
};

// One row per kernel or slice. Columns: `kernel` (or Benchmark and Kernel), a column per counter of
// the model by its name or by those of the published hw_perf.csv, and time as Elapsed_Cycles,
// time_s, time_ms or time_us. Optional: lanes, idle_sms or active_sms, Pipeline_Duty, voltage,
// frequency_MHz, mix, start_s, suite, measured_W. A column of numbers with another name is an
// error.
ActivityFile read_counters(const CsvTable& table, const Model& model,
                           const ActivityOptions& options = {});

// Nsight Compute's CSV: `--page raw` (a column per metric, a row of units) or `--page details` (a
// row per metric). Launches of a kernel are averaged.
ActivityFile read_nsight(const std::string& text, const std::string& source, const Model& model,
                         const ActivityOptions& options = {});

// Statistics of `gpusim run`: 32 simulated cores are a warp. docs/accelwattch.md says what is
// assumed.
ActivityFile read_tallies(const std::string& path, const Model& model,
                          const ActivityOptions& options = {});

// Any of the three, by what is in it.
ActivityFile read_activity(const std::string& path, const Model& model,
                           const ActivityOptions& options = {});

// The hybrid variant: `counters` of kernels in `base` are replaced by those of the kernel of the
// same name in `other`; the time stays that of `base`. Throws Error for a kernel that `other` does
// not have.
void replace_counters(ActivityFile& base, const ActivityFile& other, const Model& model,
                      const std::vector<std::string>& counters);

}  // namespace gpusim::accelwattch
