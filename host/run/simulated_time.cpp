#include "host/run/simulated_time.h"

#include <algorithm>

namespace gpusim::host {

void SimulatedTime::release(uint32_t core, const ClassCounts& executed, uint64_t address,
                            uint64_t number) {
  double& time = released_[2 * address + (number & 1)];
  time = std::max(time, now(core, executed));
}

void SimulatedTime::acquire(uint32_t core, const ClassCounts& executed, uint64_t address,
                            uint64_t number) {
  const auto released = released_.find(2 * address + (number & 1));
  if (released != released_.end())
    waited_[core] += std::max(0.0, released->second - now(core, executed));
}

void SimulatedTime::start(uint32_t child, const ClassCounts& before, uint32_t parent,
                          const ClassCounts& of_parent) {
  waited_[child] = std::max(waited_[child], now(parent, of_parent) - table_.of(before));
}

}  // namespace gpusim::host
