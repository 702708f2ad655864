// Power over time: what each slice of a run would take on energy targets.
#pragma once
#include <string>
#include <vector>

#include "energy/model.h"
#include "host/output_file.h"
#include "host/run/timeline.h"

namespace gpusim::host {

struct PowerSlice {
  double start_s = 0, end_s = 0;
  std::array<double, kInsnClassCount> joules{};  // above idle; by class
  double dynamic_joules = 0, idle_watts = 0;
};
// Of one target. The slices' dynamic joules add up to the estimate of the whole run.
struct PowerTrace {
  const energy::Target* target = nullptr;
  std::string time_base;
  bool memory_is_placed = false;
  std::vector<PowerSlice> slices;
};
// `base`: which of the recorder's time bases is the target's. `memory_is_placed`: the recorder's slices
// tell accesses on the chip from those off it.
PowerTrace power_trace(const energy::Target& target, const ActivityRecorder& activity, size_t base,
                       bool memory_is_placed);
PowerTrack power_track(const PowerTrace& trace);

// target,start_s,end_s, watts per class that occurs, dynamic_W,idle_W,total_W,dynamic_J
std::string power_csv(const std::vector<PowerTrace>& traces);
// A page with a chart per target.
std::string power_html(const std::vector<PowerTrace>& traces, const std::string& program);

// --power-trace: FILE.csv or FILE.html. Throws Error.
OutputFile power_file(const std::string& path);
void write_power(const OutputFile& file, const std::vector<PowerTrace>& traces,
                 const std::string& program);

}  // namespace gpusim::host
