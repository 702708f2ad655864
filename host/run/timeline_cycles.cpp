#include "host/run/timeline_cycles.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/error.h"

namespace gpusim::host {

CycleTable::CycleTable(const energy::Target& target, const std::string& option,
                       bool memory_is_placed)
    : name(target.name) {
  if (!target.timing)
    throw Error(fmt::format(
        "{}: target {} has no clock and no cycles; `gpusim energy targets NAME` shows what "
        "a target has, cortex-a7 is one with both",
        option, target.name));
  for (size_t c = 0; c < cycles.size(); ++c) cycles[c] = target.timing->cycles[c];
  if (!memory_is_placed)
    cycles[static_cast<size_t>(InsnClass::kOffChipMemory)] = target.timing->unplaced_memory_cycles;
  clock_hz = target.timing->clock.value();
  units = target.timing->units;
  units_are_cores = target.timing->units_are_cores;
}

double CycleTable::of(const ClassCounts& classes) const {
  double sum = 0;
  for (size_t c = 0; c < cycles.size(); ++c) sum += static_cast<double>(classes[c]) * cycles[c];
  return sum;
}

double CycleTable::seconds(const ClassCounts& all, double longest_cycles,
                           uint32_t busy_cores) const {
  double n = units;
  if (units_are_cores && busy_cores > 0) n = n == 0 ? busy_cores : std::min<double>(n, busy_cores);
  // Where units are something else than cores, a core is a lane of one: how long alone is not known.
  const double throughput = of(all) / (n == 0 ? 1 : n);
  return (units_are_cores ? std::max(throughput, longest_cycles) : throughput) / clock_hz;
}

}  // namespace gpusim::host
