// What was measured, as a file that `gpusim energy` takes as a target
// (docs/howto/energy_target.md).
#pragma once
#include <string>

#include "energy/power/microbench/measure.h"

namespace gpusim::power {

// A word made of the GPU's name: "nvidia-h200".
std::string target_name(const GpuInfo& gpu);
// Throws Error if nothing was measured. `date` is put into the source's text.
std::string target_json(const BenchResults& results, const std::string& name,
                        const std::string& date);
// For people: a line for each instruction.
std::string bench_table(const BenchResults& results);

}  // namespace gpusim::power
