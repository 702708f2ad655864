// A chip, as a file describes it: cores, caches, network, memory, energies. docs/chip.md lists the
// keys.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/insn_class.h"

namespace gpusim::host::chip {

// Simulated time. A cycle is divided so that bandwidths need not be whole bytes per cycle.
using Ticks = uint64_t;
inline constexpr Ticks kCycle = 256;
// To the nearest one.
constexpr Ticks ticks(double cycles) { return (static_cast<Ticks>(cycles * 2 * kCycle) + 1) / 2; }
constexpr double cycles_of(Ticks t) { return static_cast<double>(t) / kCycle; }

// Cycles from when an instruction begins until one that reads its result may.
struct Latencies {
  std::array<double, kInsnClassCount> of_class{};
  double multiplication = 1;  // of integers
};

struct CoreShape {
  uint32_t count = 1;
  uint32_t per_tile = 1;
  double issue_width = 1;
  std::array<double, kInsnClassCount> cycles{};  // of one instruction; 1 unless told
  double taken_branch_cycles = 0;                // beyond those of its class
  std::optional<Latencies> latency;              // none: nothing waits for results
  uint32_t outstanding_loads = 1;                // misses that a core does not wait for, plus one
  uint32_t store_buffer = 8;                     // stores that it does not wait for
};

struct CacheShape {
  uint64_t size_bytes = 0;
  uint32_t ways = 0;
  double hit_cycles = 1;
  double cycles_per_request = 1;  // of a shared one: how often it can begin with another
  bool is_write_back = true;
  bool is_of_tile = false;  // shared by the cores of a tile; else each core has one
  uint64_t sets(uint32_t line_bytes) const { return size_bytes / line_bytes / ways; }
};

enum class Coherence : uint8_t { kNone, kMesi };

// What all cores share, in slices by address.
struct SharedShape {
  bool is_scratchpad = false;  // holds everything: never misses
  uint32_t slices = 1;
  CacheShape cache;  // of one slice
  uint32_t interleave_bytes = 64;
  bool folds_address = false;  // the slice is an XOR of the chunk's number, not its lowest bits
  Coherence coherence = Coherence::kNone;
  uint32_t sharers = 0;  // that a directory's entry can name; 0: all. More: everybody is told.
};

enum class Topology : uint8_t { kMesh, kTorus, kRing, kCrossbar, kBus, kHierarchical };

struct NetworkShape {
  Topology topology = Topology::kCrossbar;
  uint32_t columns = 1, rows = 1;  // of tiles
  double router_cycles = 1, link_cycles = 1;
  uint32_t flit_bytes = 16, header_bytes = 8;
  // Hierarchical: clusters of clusters of tiles, the innermost first; the last has all of them.
  struct Level {
    uint32_t tiles = 1;  // of a cluster
    double cycles = 1;   // one way between two tiles of it
    double ports = 1;    // flits per cycle that enter, and that leave, one cluster inside it
  };
  std::vector<Level> levels;
  double flit_cycles = 1;  // from flit to flit: other than 1 where links have a clock of their own
};

struct MemoryShape {
  uint32_t channels = 1;
  double bytes_per_cycle = 8;  // of one
  double latency_cycles = 100;
  std::vector<uint32_t> tiles;  // where channels are; empty: spread over the tiles
  // Rows stay open: an access to the same row of a bank is faster.
  bool open_page = false;
  uint32_t banks = 8, row_bytes = 2048;
  double row_hit_cycles = 60;
};

struct EnergyShape {
  double l1_pj = 0, l1_instruction_pj = 0, l2_pj = 0, shared_pj = 0;  // per access
  double flit_hop_pj = 0;  // one flit through a router and a link
  double memory_pj_per_bit = 0;
  double static_w = 0;      // of the whole chip
  std::string core_target;  // whose energies instructions have that access no memory; may be empty
};

struct ChipShape {
  std::string name, title;
  std::map<std::string, std::string> sources;  // "l1_data.size": where that is from
  std::vector<std::string> notes;
  // Keys whose values are not those of the file, and what they are.
  std::vector<std::pair<std::string, std::string>> changes;
  // Accesses to memory take no more than the cycles of their instructions. No file says so.
  bool is_ideal = false;
  double clock_hz = 1e9;
  uint32_t line_bytes = 64;
  uint32_t interval_cycles = 1000;
  CoreShape cores;
  std::optional<CacheShape> l1_data, l1_instruction, l2;
  SharedShape shared;
  NetworkShape network;
  MemoryShape memory;
  EnergyShape energy;

  uint32_t tiles() const { return network.columns * network.rows; }
};

// Throws Error that says what is wrong and where.
ChipShape parse_chip(const std::string& text, const std::string& origin);
// A name of a chip that is built in, or a file; with single keys changed, as
// "mesh-1024,memory.latency_cycles=200" (host/chip/changes.h).
ChipShape find_chip(const std::string& option);
const std::vector<ChipShape>& builtin_chips();
// Cores with these cycles per class and nothing around them: `--simulated-time=locks`.
ChipShape ideal_chip(uint32_t cores, const std::array<double, kInsnClassCount>& cycles,
                     double clock_hz);
// Figures of a chip's file that `sources` says nothing of: "l1_data.size".
std::vector<std::string> figures_without_source(const std::string& text, const std::string& origin);

}  // namespace gpusim::host::chip
