// Our own tallies as activity: the software variant.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/error.h"
#include "energy/accelwattch/activity.h"
#include "energy/accelwattch/ptx_counts.h"
#include "energy/activity.h"

namespace gpusim::accelwattch {
namespace {

// A warp's access to consecutive 4-byte words takes four sectors of 32 bytes.
constexpr double kSectorsPerAccess = 4;
// Operands that an instruction reads and writes in the register file.
constexpr double kReads = 2, kWrites = 1;
// An instruction fetch brings two instructions.
constexpr double kPerFetch = 2;
// Of the five pipelines that the duty cycle counts, at one warp instruction per SM and cycle: from
// the published sheet Volta_SASS_SIM (parboil-sgemm: 2.02 per cycle, duty cycle 0.253).
constexpr double kDutyPerIpc = 0.125, kMostDuty = 0.8;

// The counts of `classes`, which `k` did in its time on its SMs.
void set_pipes(KernelActivity& k, const ChipModel& chip, double warp_instructions, Hertz clock) {
  const double cycles = k.time.value() * clock.value();
  const double ipc = warp_instructions / (cycles * chip.sms);
  const int i = chip.find_counter("PIPE_A");
  if (i >= 0) k.counts[static_cast<size_t>(i)] = std::min(kMostDuty, kDutyPerIpc * ipc) * cycles;
  k.mix = mix_of(chip, k.counts);
}

void set_counts(KernelActivity& k, const ChipModel& chip, const ClassCounts& classes,
                bool memory_is_placed, Hertz clock) {
  const auto count = [&](InsnClass c) {
    return static_cast<double>(classes[static_cast<size_t>(c)]);
  };
  k.counts.assign(chip.counters.size(), 0.0);
  const auto set = [&](const char* counter, double value) {
    const int i = chip.find_counter(counter);
    if (i >= 0) k.counts[static_cast<size_t>(i)] = value;
  };
  const double instructions = static_cast<double>(energy::instructions_of(classes));
  const double warp_instructions = instructions / k.lanes;
  const double memory = count(InsnClass::kOnChipMemory) + count(InsnClass::kOffChipMemory);
  set("TOT_INST", warp_instructions);
  set("FP_INT", warp_instructions - memory / k.lanes);
  set("IC_H", warp_instructions / kPerFetch);
  set("REG_RD", kReads * instructions);
  set("REG_WR", kWrites * instructions);
  set("INT_ACC", count(InsnClass::kIntegerArithmetic) + count(InsnClass::kIntegerLogical) +
                     count(InsnClass::kIntegerComparison) + count(InsnClass::kControlFlow) +
                     count(InsnClass::kOther));
  set("INT_DIV_ACC", count(InsnClass::kIntegerDivision));
  set("FP_ACC", count(InsnClass::kFloatArithmetic) + count(InsnClass::kFloatComparison));
  set("FP_DIV_ACC", count(InsnClass::kFloatDivision));
  set("DP_ACC", count(InsnClass::kDoubleArithmetic));
  set("DP_DIV_ACC", count(InsnClass::kDoubleDivision));
  set("FP_EXP_ACC", count(InsnClass::kSpecialFunction));
  const double sectors = kSectorsPerAccess / chip.lanes;
  set("DC_RH", sectors * count(InsnClass::kOnChipMemory));
  const double far = sectors * count(InsnClass::kOffChipMemory);
  if (memory_is_placed) {
    set("DC_RM", far);
    set("L2_RM", far);
    set("NOC_A", 2 * far);
    set("MEM_RD", far);
  } else {
    set("DC_RH", sectors * memory);
  }
  set("L2_RH", sectors * count(InsnClass::kParallelism));  // atomics are executed in the L2 cache
  set_pipes(k, chip, warp_instructions, clock);
}

}  // namespace

ActivityFile read_tallies(const std::string& path, const Model& model,
                          const ActivityOptions& options) {
  const energy::Activity run = energy::load_activity(path);
  const ChipModel& chip = *model.chip;
  ActivityFile file;
  KernelActivity k;
  k.name = run.name;
  k.lanes = options.lanes.value_or(chip.lanes);
  if (!(k.lanes >= 1) || k.lanes > chip.lanes)
    throw Error(fmt::format("--lanes {}; a warp has 1 to {}", k.lanes, chip.lanes));
  const double warps = run.cores > 0 ? std::ceil(run.cores / chip.lanes) : chip.sms;
  k.active_sms = options.active_sms.value_or(std::min(chip.sms, warps));
  if (!run.memory_is_placed)
    file.notes.push_back(
        "memory accesses are charged as hits of the L1 cache: the run had no caches");
  const Hertz clock = options.clock.value_or(chip.clock);
  double seconds = 0;
  if (options.seconds) {
    seconds = options.seconds->value();
  } else {
    if (!(options.ipc > 0)) throw Error(fmt::format("--ipc {}; it must be positive", options.ipc));
    const double warp_instructions = static_cast<double>(run.instructions()) / k.lanes;
    seconds = warp_instructions / (options.ipc * k.active_sms) / clock.value();
    file.notes.push_back(fmt::format(
        "time is not simulated: {:g} warp instructions per SM and cycle are assumed (--ipc, or "
        "--seconds)",
        options.ipc));
  }
  if (!(seconds > 0)) throw Error(path + ": the run takes no time");
  k.voltage = options.voltage_follows_clock && options.clock ? *options.clock / chip.clock : 1;
  if (!run.opcodes.empty()) {
    file.notes.push_back("counters are made of the opcodes of PTX, not of machine code");
    const bool is_profiled = std::all_of(
        run.functions.begin(), run.functions.end(), [](const energy::ActivityPart& part) {
          return part.warps || energy::instructions_of(part.classes) == 0;
        });
    if (!is_profiled)
      file.notes.push_back(
          "lanes per warp and sectors per access are assumed: `--profile` counts them");
    for (const energy::ActivityPart& part : run.functions) {
      const auto instructions = static_cast<double>(energy::instructions_of(part.classes));
      if (instructions == 0) continue;
      k.name = part.name;
      k.time = Seconds(seconds * instructions / static_cast<double>(run.instructions()));
      if (part.warps && part.warps->warp_instructions != 0 && !options.lanes)
        k.lanes = static_cast<double>(part.warps->instructions) /
                  static_cast<double>(part.warps->warp_instructions);
      set_ptx_counts(k, chip, part);
      set_pipes(k, chip, instructions / k.lanes, clock);
      file.kernels.push_back(k);
    }
    return file;
  }
  if (run.slices.empty()) {
    k.time = Seconds(seconds);
    set_counts(k, chip, run.classes, run.memory_is_placed, clock);
    file.kernels.push_back(std::move(k));
    return file;
  }
  file.is_sliced = true;
  file.notes.push_back("slices have their shares of this time from the run's simulated time");
  double all = 0;
  for (const energy::ActivitySlice& slice : run.slices) all += slice.seconds;
  for (const energy::ActivitySlice& slice : run.slices) {
    k.time = Seconds(seconds * slice.seconds / all);
    set_counts(k, chip, slice.classes, run.memory_is_placed, clock);
    file.kernels.push_back(k);
    k.start += k.time;
  }
  return file;
}

}  // namespace gpusim::accelwattch
