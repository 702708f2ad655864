// The instruction-class model of the thesis, chapter 6: energy from counts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "energy/activity.h"
#include "energy/target.h"

namespace gpusim::energy {

// Sum of count x energy per instruction. Bounds are sums of bounds: all errors the same way.
Interval<Joules> dynamic_energy(const Target& target, const ClassCounts& classes,
                                bool memory_is_placed);
// The same, row by row where the target has rows of PTX and opcodes are known.
Interval<Joules> dynamic_energy(const Target& target, const ClassCounts& classes,
                                const OpcodeCounts& opcodes, PtxClasses scheme,
                                bool memory_is_placed);

// Equations 6.7 to 6.9 for one component: it takes max_power while active, and is active for
// access_rate of the cycles. With max_power = energy per instruction / its time, the sum of both
// products times the run's time is the sum of counts times energies.
struct ComponentPower {
  Watts max_power;
  double access_rate = 0;
  Watts power() const { return max_power * access_rate; }
};
struct PowerByAccessRate {
  std::array<ComponentPower, kInsnClassCount> components;
  double total_cycles = 0;  // 6.8, of all units together
  Seconds time;             // of `units` working at the same time
  Watts power;              // 6.4 to 6.6
};
// `units`: that are busy. The target must have timing.
PowerByAccessRate power_by_access_rate(const Target& target, const ClassCounts& classes,
                                       bool memory_is_placed, double units);

// Equation 6.10, with bandwidth dividing: the thesis prints it as a factor, which would be seconds
// only if it meant seconds per byte.
Seconds transfer_time(const Transfer& transfer, Bytes size);
Joules transfer_energy(const Transfer& transfer, Bytes size, double count = 1);

struct TransferWork {
  Bytes size;  // of one transfer
  double count = 0;
};

struct EstimateOptions {
  std::optional<Seconds> time;  // known from elsewhere, instead of the target's timing
  std::vector<TransferWork> transfers;
  std::optional<Interval<Joules>> cpu_energy;  // of the program's sequential part, E_CPU of 6.1
};

struct ClassEnergy {
  uint64_t count = 0;
  Interval<Joules> energy;
  const ClassCost* cost = nullptr;  // the target's
  const char* priced_as = "";       // the class, or unplaced_memory
};
struct PartEnergy {
  std::string name;
  uint64_t instructions = 0;
  Interval<Joules> energy;
};
struct Estimate {
  const Target* target = nullptr;
  uint64_t instructions = 0;
  std::array<ClassEnergy, kInsnClassCount> classes;
  Interval<Joules> dynamic;
  std::optional<Seconds> time;  // of computing; nothing if neither the target nor the user knows
  bool time_is_given = false;
  bool time_is_assumed() const { return time && !time_is_given && target->timing->is_assumed; }
  std::vector<std::string> remarks;  // what the figures suppose of the simulated cores
  std::optional<Watts> dynamic_power;
  std::optional<Watts> idle_power;    // of the highest operating state
  std::optional<Joules> idle_energy;  // while computing and transferring
  std::optional<Seconds> transfer_time;
  std::optional<Joules> transfer_energy;
  std::optional<Interval<Joules>> cpu_energy;
  // Equation 6.1, as far as its parts are known: E_CPU + E_accelerator (dynamic and idle) +
  // E_transfer.
  Interval<Joules> total;
  std::vector<PartEnergy> functions, lines, per_core;  // by energy; cores by number
  std::vector<PartEnergy> rows;  // of the target, that opcodes were priced by; by energy
  uint32_t active_cores = 0, idle_cores = 0;  // if the activity has counts per core
};

// Throws Error where an option asks for what the target does not have. The target must
// outlive the estimate.
Estimate estimate(const Target& target, const Activity& activity, const EstimateOptions& options);

}  // namespace gpusim::energy
