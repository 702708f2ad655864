// Where power samples come from. Sources are interchangeable, and each has its own clock: the
// machine's monotonic one, or a virtual one for recordings and for the simulated sensor, which then
// take no real time.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/power/sample.h"

namespace gpusim::power {

class PowerSource {
 public:
  virtual ~PowerSource() = default;
  virtual std::string name() const = 0;  // for people: "nvml:0 (Tesla K20c)"
  // Seconds on the source's clock. Sample::time is of the same clock.
  virtual Seconds now() const = 0;
  // Returns when now() >= time; at once where it is already. A virtual clock jumps.
  virtual void sleep_until(Seconds time) = 0;
  virtual bool is_virtual() const = 0;
  virtual bool is_endless() const { return false; }  // virtual, and poll() never says it is over
  // What the sensor says now. It may repeat its last value. nullopt: a recording or a simulation is
  // over. Throws Error where the source fails; what was read before stays valid.
  virtual std::optional<Sample> poll() = 0;
  // Readings that the device itself buffered since the last call, oldest first; empty where it has
  // no such buffer.
  virtual std::vector<Sample> take_buffered() { return {}; }
};

struct SourceOptions {
  std::string sysfs_root = "/sys";  // of rapl and hwmon
  std::string nvml_library;         // empty: libnvidia-ml.so.1 as the loader finds it
};

// By a spec:
//   nvml:INDEX           a GPU of NVIDIA; `nvml` is nvml:0. nvml:0:instant and nvml:0:average
//                        take Sample::power from these fields
//   rapl, rapl:ZONE      the CPU's energy counters (all packages; or one zone: rapl:0, rapl:0:1)
//   hwmon:NAME           a power sensor of the Linux kernel, by its driver's name; hwmon:NAME:2
//   csv:FILE             a recording (energy/power/trace.h)
//   sim:FILE.json        the simulated sensor (energy/power/simulated.h)
// Throws Error that says what is missing, where, and what there is instead.
std::unique_ptr<PowerSource> open_source(const std::string& spec,
                                         const SourceOptions& options = {});

// The clock of real sources: CLOCK_MONOTONIC. CUDA launches, sensors and recordings of one machine
// share it.
Seconds monotonic_now();
void monotonic_sleep_until(Seconds time);

}  // namespace gpusim::power
