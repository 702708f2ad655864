// Power over active lanes, active SMs and the clock, for the static, idle and constant parts of
// AccelWattch's model (sections 4.2 to 4.7): the files that `gpusim energy tune` takes.
#pragma once
#include <string>
#include <vector>

#include "energy/power/microbench/measure.h"

namespace gpusim::power {

// A mix of instructions, named as energy/accelwattch/static_power.h names them.
struct Mix {
  std::string_view name;
  std::vector<std::string_view> instructions;
};
const std::vector<Mix>& mixes();

struct SweepPoint {
  std::string mix;
  uint32_t lanes = 32;
  uint32_t active_sms = 0;
  Hertz clock;
  Watts power;
};

struct Sweeps {
  GpuInfo gpu;
  std::string source;
  std::vector<SweepPoint> lanes, sms;  // with all SMs; with all lanes
  std::vector<std::string> notes;
};

Sweeps run_sweeps(Gpu& gpu, PowerSource& source, const BenchOptions& options,
                  const Progress& progress = {});

// The three files' text: with the points of earlier runs, whose text is given (empty: none). Each
// run adds one clock, which the user has set; we never do. Throws Error where earlier text
// has another header.
struct SweepFiles {
  std::string constant, statics, idle;
};
SweepFiles sweep_files(const Sweeps& sweeps, const SweepFiles& earlier);

}  // namespace gpusim::power
