// Cycles of instructions by class: in order, one after the other.
#pragma once
#include <array>
#include <string>

#include "energy/target.h"

namespace gpusim::host {

struct CycleTable {
  std::string name = "1 cycle per instruction, at an assumed 1 GHz";
  std::array<double, kInsnClassCount> cycles;
  double clock_hz = 1e9;
  // That work at the same time: no more can be done in a cycle. 0: every core is one.
  double units = 0;
  bool units_are_cores = true;  // a core keeps one unit busy at most

  CycleTable() { cycles.fill(1); }
  // Of a target; throws Error, naming `option`, if it has no timing. `memory_is_placed`: caches
  // tell accesses on the chip from those off it.
  CycleTable(const energy::Target& target, const std::string& option, bool memory_is_placed = false);
  double of(const ClassCounts& classes) const;
  // Of what cores did at the same time: all of them, and the one that took longest.
  double seconds(const ClassCounts& all, double longest_cycles, uint32_t busy_cores) const;
};

}  // namespace gpusim::host
