// A program in micro-ops with the data that its cores start from.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/differential/backends/rng.h"

namespace gpusim::difftest {

// Starting value of a slot: core c has base + c * stride, or values[c % size] where there are some.
struct SlotData {
  uint64_t base = 0, stride = 0;
  std::vector<uint64_t> values;
  uint64_t at(uint32_t core) const {
    return values.empty() ? base + core * stride : values[core % values.size()];
  }
};

// Permissions of a range. Every `period`-th core has `other_flags` instead (0: no core); cores
// differ only in their windows. Addresses in windows are those of core 0.
struct Region {
  uint64_t address = 0, size_bytes = 0;
  uint8_t flags = 0;
  uint32_t period = 0;
  uint8_t other_flags = 0;
};

struct Case {
  Module module;
  MachineConfig config;  // cores, memory; threads and widths belong to a run
  std::vector<SlotData> slots;
  std::vector<Region> regions;
  uint64_t memory_seed = 0;
  std::vector<bool> ignored;  // slots that may differ: results of racing atomics
  std::vector<SlotData> window_words;  // what every window starts with; noise follows
  uint32_t exit_uop = 0;      // where cores go that jumped to nowhere
  uint32_t resumed_faults = 8;  // of 16 after which a core goes on at the next micro-op
};

Case random_case(uint64_t seed, uint32_t cores, MemoryModel model);

std::string print_uop(const Module& module, uint32_t at);
std::string print_case(const Case& c);

}  // namespace gpusim::difftest
