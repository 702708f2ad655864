// What was executed: counts per instruction class of a whole run, and of its parts.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "energy/longest_cores.h"
#include "energy/ptx_opcodes.h"

namespace gpusim::energy {

// Of kernels of PTX: executions by threads of each spelling, "fma.rn.f32".
using OpcodeCounts = std::map<std::string, uint64_t>;

/// What the warps of a kernel did together, from `--profile`; see docs/ptx.md.
struct WarpActivity {
  uint64_t instructions = 0, warp_instructions = 0;  // by threads, by warps
  // Of 32 bytes, that accesses of warps to global memory touched: all, of stores, of atomics.
  uint64_t sectors = 0, store_sectors = 0, atomic_sectors = 0;
  uint64_t shared_accesses = 0;  // by warps
};

/// What caches beside a kernel did, from `--caches`. In lines but for accesses, which are loads and
/// stores by threads.
struct CacheActivity {
  struct Level {
    uint64_t reads = 0, read_misses = 0, writes = 0, write_misses = 0;
  };
  uint64_t line_bytes = 0;
  std::vector<Level> levels;  // nearest first
  uint64_t memory_reads = 0, memory_writes = 0;
  uint64_t accesses = 0, off_chip_accesses = 0;
};

// A function, a source line, a kernel, a core.
struct ActivityPart {
  std::string name;
  ClassCounts classes{};
  OpcodeCounts opcodes{};
  std::optional<WarpActivity> warps{};
  std::optional<CacheActivity> caches{};
};

// A piece of a run's time, in order.
struct ActivitySlice {
  double seconds = 0;  // simulated, on some target: shares of the whole are what counts
  ClassCounts classes{};
};

struct Activity {
  std::string name;    // of the file
  uint32_t cores = 0;  // simulated; 0: not known
  ClassCounts classes{};
  OpcodeCounts opcodes{};                 // of kernels; else empty
  PtxClasses scheme = PtxClasses::kOurs;  // by which opcodes became classes
  // Off-chip accesses are those that a cache model let through; else they are all accesses.
  bool memory_is_placed = false;
  std::vector<ActivityPart> functions;  // or kernels
  std::vector<ActivityPart> lines;
  std::vector<ActivityPart> per_core;
  LongestCores longest_cores;         // none: not known, all cores did the same
  std::vector<ActivitySlice> slices;  // empty unless the run was observed over time

  uint64_t instructions() const;
};

uint64_t instructions_of(const ClassCounts& classes);

// The JSON object that `gpusim run --stats` or `gpusim cuda --stats` writes. Throws Error for what
// is missing, negative, fractional, inconsistent or empty, and for a scheme other than ours if
// there are no opcodes.
Activity parse_stats(const std::string& text, const std::string& origin,
                     PtxClasses scheme = PtxClasses::kOurs);
// A file of either kind: statistics, or a trace (energy/trace.h).
Activity load_activity(const std::string& path, PtxClasses scheme = PtxClasses::kOurs);

}  // namespace gpusim::energy
