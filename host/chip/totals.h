// What a chip did between two moments.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "host/chip/core_model.h"
#include "host/chip/memory_system.h"

namespace gpusim::host::chip {

struct Totals {
  Ticks time = 0;  // of the latest core
  std::vector<Stack> cores;
  std::vector<Ticks> held_up;  // per core: what others waited for it
  std::vector<CoreCounts> counts;
  // Per word of the code map: time of instructions there, but kCompute, which is in `executions`.
  std::array<std::vector<Ticks>, kParts> at;
  std::vector<uint64_t> executions;  // of blocks
  std::array<uint64_t, kMissKinds> misses{};
  // Lines that cores took from each other though they used different words: places of the code map,
  // of who wrote and of who then missed.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> false_sharing, true_sharing;
  MemoryCounts memory;
  std::vector<Ticks> links, slices, channels;
  std::vector<uint64_t> bytes_between;  // tiles: [from][to]
  uint64_t locks = 0, contended_locks = 0;

  Totals& operator-=(const Totals& before);
};

// Use over time, as shares of what is possible.
struct Sample {
  Ticks begin = 0, end = 0;
  double busiest_link = 0, mean_link = 0, channels = 0, slices = 0;
  double instructions_per_cycle = 0;
  std::vector<double> each_channel = {};  // of few
};

}  // namespace gpusim::host::chip
