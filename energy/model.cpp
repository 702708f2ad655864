#include "energy/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "device_sim/base/error.h"

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
                                      PtxClasses scheme, bool placed) {
  std::vector<PartEnergy> list;
  for (const ActivityPart& part : parts)
    list.push_back({part.name, instructions_of(part.classes),
                    dynamic_energy(target, part.classes, part.opcodes, scheme, placed)});
  return list;
}

void sort_by_energy(std::vector<PartEnergy>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const PartEnergy& a, const PartEnergy& b) {
    return a.energy.value > b.energy.value;
  });
}

// Work spreads over the units evenly; the core that takes longest bounds the time from below. On a
// chip of cores a simulated core keeps one busy. On a GPU it is a thread: a unit takes them by
// warps, and each issues an instruction every `thread_cycles` at most.
struct ComputingTime {
  Seconds seconds;
  bool is_longest_core = false;  // and not that of the whole work
};
ComputingTime computing_time(const Timing& timing, const Activity& activity) {
  const bool placed = activity.memory_is_placed;
  const LongestCores& cores = activity.longest_cores;
  const double busy_cores = cores.active_cores() ? cores.active_cores() : activity.cores;
  double units = timing.units;
  if (busy_cores > 0) {
    const double most = timing.units_are_cores ? busy_cores : std::ceil(busy_cores / timing.warp);
    units = units == 0 ? most : std::min(units, most);
  }
  if (units == 0) units = 1;
  const double all = total_cycles(timing, activity.classes, placed) / units;

  const auto alone = [&](const ClassCounts& core) {
    if (timing.units_are_cores) return total_cycles(timing, core, placed);
    return static_cast<double>(instructions_of(core)) * timing.thread_cycles;
  };
  double longest = 0;
  for (const ClassCounts& core : cores.list()) longest = std::max(longest, alone(core));
  // Nothing is known of single cores: as if all had done the same.
  if (cores.list().empty() && busy_cores > 0) longest = alone(activity.classes) / busy_cores;
  return {std::max(all, longest) / timing.clock, longest > all};
}

// What the figures suppose of the simulated cores.
std::vector<std::string> remarks_on(const Timing& timing, const Activity& activity,
                                    bool is_longest_core) {
  std::vector<std::string> remarks;
  if (timing.units_are_cores && timing.units > 0 && activity.cores > timing.units)
    remarks.push_back(fmt::format(
        "{} simulated cores, {:g} of the target: they are supposed to take turns at no cost",
        activity.cores, timing.units));
  if (!timing.units_are_cores && is_longest_core)
    remarks.push_back(fmt::format(
        "{} threads do not fill the target: the time is that of the longest thread, {:g} cycles "
        "per instruction",
        activity.cores, timing.thread_cycles));
  return remarks;
}

// The row that prices an opcode on this target; null: its class does.
const Interval<Joules>* row_of(const Target& target, std::string_view opcode) {
  const auto row = target.ptx_rows.find(ptx_row(opcode));
  return row == target.ptx_rows.end() ? nullptr : &row->second;
}

Interval<Joules> opcode_energy(const Target& target, std::string_view opcode, PtxClasses scheme,
                               bool placed) {
  if (const Interval<Joules>* row = row_of(target, opcode)) return *row;
  return cost_of(target, static_cast<size_t>(ptx_class(opcode, scheme)), placed).energy;
}

// Classes and rows of a run of kernels, row by row.
void price_opcodes(const Target& target, const Activity& activity, Estimate& e) {
  for (ClassEnergy& c : e.classes) c.energy = {};
  std::map<std::string, PartEnergy> rows;
  for (const auto& [opcode, count] : activity.opcodes) {
    const Interval<Joules> energy =
        opcode_energy(target, opcode, activity.scheme, activity.memory_is_placed) *
        static_cast<double>(count);
    e.classes[static_cast<size_t>(ptx_class(opcode, activity.scheme))].energy += energy;
    const bool has_row = row_of(target, opcode) != nullptr;
    PartEnergy& row = rows[has_row ? std::string(ptx_row(opcode)) : "(by class)"];
    row.instructions += count;
    row.energy += energy;
  }
  for (auto& [name, row] : rows) {
    row.name = name;
    e.rows.push_back(row);
  }
  sort_by_energy(e.rows);
}

}  // namespace

Interval<Joules> dynamic_energy(const Target& target, const ClassCounts& classes,
                                const OpcodeCounts& opcodes, PtxClasses scheme, bool placed) {
  if (target.ptx_rows.empty() || opcodes.empty()) return dynamic_energy(target, classes, placed);
  Interval<Joules> sum;
  for (const auto& [opcode, count] : opcodes)
    sum += opcode_energy(target, opcode, scheme, placed) * static_cast<double>(count);
  return sum;
}

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
    const bool is_unplaced = &cost == &target.unplaced_memory && target.has_unplaced_memory;
    e.classes[c] = {count, cost.energy * static_cast<double>(count), &cost,
                    is_unplaced ? kUnplacedMemory : kInsnClassNames[c]};
  }
  e.dynamic = dynamic_energy(target, activity.classes, activity.opcodes, activity.scheme, placed);
  if (!target.ptx_rows.empty() && !activity.opcodes.empty()) price_opcodes(target, activity, e);
  e.total = e.dynamic;

  bool is_longest_core = false;
  if (options.time) {
    e.time = options.time;
    e.time_is_given = true;
  } else if (target.timing) {
    const ComputingTime time = computing_time(*target.timing, activity);
    e.time = time.seconds;
    is_longest_core = time.is_longest_core;
  }
  if (target.timing) e.remarks = remarks_on(*target.timing, activity, is_longest_core);
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

  e.functions = part_energies(target, activity.functions, activity.scheme, placed);
  e.lines = part_energies(target, activity.lines, activity.scheme, placed);
  e.per_core = part_energies(target, activity.per_core, activity.scheme, placed);
  sort_by_energy(e.functions);
  sort_by_energy(e.lines);
  for (const PartEnergy& core : e.per_core) ++(core.instructions ? e.active_cores : e.idle_cores);
  return e;
}

}  // namespace gpusim::energy
