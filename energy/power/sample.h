// One reading of a power sensor.
#pragma once
#include <cstdint>
#include <optional>

#include "energy/units.h"

namespace gpusim::power {

using energy::Hertz;
using energy::Joules;
using energy::Seconds;
using energy::Watts;

struct Sample {
  Seconds time;  // when the reading came back, on the source's clock: one clock for a whole trace
  Watts power;   // what the source calls its power; sensors repeat it until they update it
  // What only some sources have.
  std::optional<Watts> instant, average;  // NVML's two fields beside its power usage
  std::optional<Joules> energy_total;     // a counter that only grows (NVML since Volta, RAPL)
  std::optional<Hertz> core_clock, memory_clock;
  std::optional<double> temperature_c;       // degrees Celsius
  std::optional<double> utilization;         // 0 to 1
  std::optional<uint64_t> throttle_reasons;  // NVML's bits
};

}  // namespace gpusim::power
