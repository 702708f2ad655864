// The hot parts of a program, and their text as device code: ADR 0045.
//
// A region is a set of places (micro-ops to which control comes) that lead to one another. Its code
// keeps the slots that it uses in registers from where it is entered to where it is left. It
// executes what needs nobody else; before any other micro-op, and before one that would fault, it
// leaves, and the interpreter goes on there. So it never stops a core.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim::cuda {

struct CodeRegion {
  std::vector<uint32_t> places;  // in order
  std::vector<uint32_t>
      entries;                   // of these: where control comes in, or back to the front of a loop
  std::vector<uint32_t> blocks;  // whose ends it executes, in order
  std::vector<Slot> slots;       // that it uses, in order
  std::vector<Slot> written;     // of these
  // Of these: the upper half is 0 from entry to exit. A core with another one is not let in.
  std::vector<Slot> narrow;
  // Of `slots`: no register is kept for them, since only code uses them that is executed far less
  // than the rest. They are read and written where they are stored.
  std::vector<Slot> rare;
  // What else there is follows from the places, or makes no difference but in time.
  bool operator==(const CodeRegion& other) const { return places == other.places; }
};

struct RegionLimits {
  // A block is hot that executes at least one in so many of all micro-ops.
  uint64_t hot_part = 2000;
  size_t most_micro_ops = 3000;  // of all regions together; the hottest blocks come first
  // Slots are rare that are used only in blocks with fewer executions than one in so many of those
  // of the region's most frequent block.
  uint64_t rare_part = 16;
  // For tests: code without loops, too. Regions are entered at each of their places, and those that
  // a module has too many of share numbers.
  bool with_straight_code = false;
};

// A region's number has 8 bits, and 0 says that there is none.
inline constexpr size_t kMostRegions = 255;

// `block_counts`: how often each block of the module was executed.
std::vector<CodeRegion> choose_regions(const Module& module, std::span<const uint64_t> block_counts,
                                       const RegionLimits& limits = {});

// CUDA C++ for device_sim/cuda/region_code.cuh to run: struct Regions.
std::string text_of(const Module& module, std::span<const CodeRegion> regions);

// The source of a kernel with the text's regions in it. `in_place`: of machines on a caller's
// memory.
inline constexpr char kCompiledKernel[] = "gpusim_simulate_compiled";
std::string kernel_source(const std::string& text, bool has_vectors, bool in_place);
// The same without the interpreter: region_kernel.cuh. So many blocks as GPUSIM_RESIDENT_BLOCKS
// says, or the text itself, shall find room on a multiprocessor.
inline constexpr uint32_t kMostResidentBlocks = 4;  // of 256 threads with 64 registers
inline constexpr char kRegionsKernel[] = "gpusim_simulate_regions";
std::string regions_source(const std::string& text, bool in_place);

// The most instructions that the code of one executes from where it looked at the budget, or was
// entered, to where it looks again.
uint32_t longest_way(const Module& module, std::span<const CodeRegion> regions);

// Per micro-op of the module: the number of the region that is entered there, from 1 on; else 0.
std::vector<uint8_t> region_entries(const Module& module, std::span<const CodeRegion> regions);

}  // namespace gpusim::cuda
