#include "energy/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "energy/error.h"

namespace gpusim::energy {
namespace {

const ClassCost& cost_of(const Target& target, size_t c, bool memory_is_placed) {
  const bool unplaced = c == static_cast<size_t>(InsnClass::kOffChipMemory) && !memory_is_placed;
  return unplaced ? target.unplaced_memory : target.classes[c];
}

double cycles_of(const Timing& timing, size_t c, bool memory_is_placed) {
  const bool unplaced = c == static_cast<size_t>(InsnClass::kOffChipMemory) && !memory_is_placed;
  return unplaced ? timing.unplaced_memory_cycles : timing.cycles[c];
}

double total_cycles(const Timing& timing, const ClassCounts& classes, bool placed) {
  double sum = 0;
  for (size_t c = 0; c < kInsnClassCount; ++c)
    sum += static_cast<double>(classes[c]) * cycles_of(timing, c, placed);
  return sum;
}

std::vector<PartEnergy> part_energies(const Target& target, const std::vector<ActivityPart>& parts,
                                      bool placed) {
  std::vector<PartEnergy> list;
  for (const ActivityPart& part : parts)
    list.push_back(
        {part.name, instructions_of(part.classes), dynamic_energy(target, part.classes, placed)});
  return list;
}

void sort_by_energy(std::vector<PartEnergy>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const PartEnergy& a, const PartEnergy& b) {
    return a.energy.value > b.energy.value;
  });
}

// Work spreads over the units evenly, but a simulated core keeps only one busy.
Seconds computing_time(const Timing& timing, const Activity& activity) {
  double busy_cores = activity.cores;
  double longest = 0;
  if (!activity.per_core.empty()) {
    busy_cores = 0;
    for (const ActivityPart& core : activity.per_core) {
      const double cycles = total_cycles(timing, core.classes, activity.memory_is_placed);
      busy_cores += cycles > 0;
      longest = std::max(longest, cycles);
    }
  }
  double units = timing.units;
  if (timing.units_are_cores && busy_cores > 0)
    units = units == 0 ? busy_cores : std::min(units, busy_cores);
  if (units == 0) units = 1;
  double cycles = total_cycles(timing, activity.classes, activity.memory_is_placed) / units;
  if (timing.units_are_cores) cycles = std::max(cycles, longest);
  return cycles / timing.clock;
}

}  // namespace

Interval<Joules> dynamic_energy(const Target& target, const ClassCounts& classes, bool placed) {
  Interval<Joules> sum;
  for (size_t c = 0; c < kInsnClassCount; ++c)
    if (classes[c] != 0) sum += cost_of(target, c, placed).energy * static_cast<double>(classes[c]);
  return sum;
}

PowerByAccessRate power_by_access_rate(const Target& target, const ClassCounts& classes,
                                       bool placed, double units) {
  if (!target.timing)
    throw Error(fmt::format("energy target {} has no timing: no access rates", target.name));
  const Timing& timing = *target.timing;
  PowerByAccessRate p;
  p.total_cycles = total_cycles(timing, classes, placed);
  if (p.total_cycles <= 0) return p;
  p.time = p.total_cycles / (timing.clock * units);
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    const double cycles = cycles_of(timing, c, placed);
    if (classes[c] == 0 || cycles <= 0) continue;
    ComponentPower& component = p.components[c];
    component.max_power =
        cost_of(target, c, placed).energy.value * (timing.clock * (units / cycles));
    component.access_rate = static_cast<double>(classes[c]) * cycles / p.total_cycles;
    p.power += component.power();
  }
  return p;
}

Seconds transfer_time(const Transfer& transfer, Bytes size) {
  return transfer.latency + size / transfer.bandwidth;
}

Joules transfer_energy(const Transfer& transfer, Bytes size, double count) {
  return transfer.power * transfer_time(transfer, size) * count;
}

Estimate estimate(const Target& target, const Activity& activity, const EstimateOptions& options) {
  const bool placed = activity.memory_is_placed;
  Estimate e;
  e.target = &target;
  e.instructions = activity.instructions();
  if (e.instructions == 0) throw Error("the tallies are empty: nothing was executed");
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    const ClassCost& cost = cost_of(target, c, placed);
    const uint64_t count = activity.classes[c];
    e.classes[c] = {count, cost.energy * static_cast<double>(count), &cost};
  }
  e.dynamic = dynamic_energy(target, activity.classes, placed);
  e.total = e.dynamic;

  if (options.time) {
    e.time = options.time;
    e.time_is_given = true;
  } else if (target.timing) {
    e.time = computing_time(*target.timing, activity);
  }
  if (e.time && e.time->value() > 0) e.dynamic_power = e.dynamic.value / *e.time;

  if (!options.transfers.empty()) {
    if (!target.transfer)
      throw Error(fmt::format("energy target {} knows nothing of transfers", target.name));
    Seconds time;
    Joules energy;
    for (const TransferWork& t : options.transfers) {
      time += transfer_time(*target.transfer, t.size) * t.count;
      energy += transfer_energy(*target.transfer, t.size, t.count);
    }
    e.transfer_time = time;
    e.transfer_energy = energy;
    e.total += {energy, energy, energy};
  }
  e.cpu_energy = options.cpu_energy;
  if (e.cpu_energy) e.total += *e.cpu_energy;
  if (!target.states.empty()) {
    e.idle_power = target.states.front().idle_power;
    if (e.time) {
      const Joules idle = *e.idle_power * (*e.time + e.transfer_time.value_or(Seconds(0)));
      e.idle_energy = idle;
      e.total += {idle, idle, idle};
    }
  }

  e.functions = part_energies(target, activity.functions, placed);
  e.lines = part_energies(target, activity.lines, placed);
  e.per_core = part_energies(target, activity.per_core, placed);
  sort_by_energy(e.functions);
  sort_by_energy(e.lines);
  for (const PartEnergy& core : e.per_core) ++(core.instructions ? e.active_cores : e.idle_cores);
  return e;
}

}  // namespace gpusim::energy
