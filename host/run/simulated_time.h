// Time on the simulated chip, by the simplest model: each core executes one instruction after the
// other, in the cycles that a table (--timing) gives for its class. From a barrier all cores go on
// at the time of the last one to come. docs/simulated-time.md says what this leaves out;
// --simulated-time=locks uses a chip::ideal_chip() instead.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/run/timeline_cycles.h"

namespace gpusim::host {

class SimulatedTime {
 public:
  SimulatedTime(CycleTable table, uint32_t cores) : table_(std::move(table)), waited_(cores, 0) {}

  // `core`, whose instructions so far are `executed`, says or learns how far others have come:
  // libgpusim/guest/gpusim_guest.h, gpusim_time_release() and _acquire().
  void release(uint32_t core, const ClassCounts& executed, uint64_t address, uint64_t number);
  void acquire(uint32_t core, const ClassCounts& executed, uint64_t address, uint64_t number);
  // `child`, with `before` instructions of former threads, begins when `parent` is where it is. So
  // does a core that is woken.
  void start(uint32_t child, const ClassCounts& before, uint32_t parent,
             const ClassCounts& of_parent);

  // Cycles from the beginning, for a core that has executed these instructions.
  double now(uint32_t core, const ClassCounts& executed) const {
    return table_.of(executed) + waited_[core];
  }
  // Of them, those for which it waited for others.
  double waited(uint32_t core) const { return waited_[core]; }
  const CycleTable& table() const { return table_; }

 private:
  CycleTable table_;
  std::vector<double> waited_;
  // The latest release of an address and the last bit of a number: nobody can be two phases of a
  // barrier ahead of another.
  std::unordered_map<uint64_t, double> released_;
};

}  // namespace gpusim::host
