// A point of a study: one run of one case on so many cores, condensed from its statistics so that
// 65,536 cores take no more room than 64. Points are files, written whole.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "energy/longest_cores.h"
#include "host/sweep/study.h"

namespace gpusim::sweep {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMostBins = 64;   // of a chip's cores, in their order
inline constexpr size_t kMostParts = 40;  // functions and lines that are kept; the rest is one more

// What is to run.
struct PointId {
  const Case* one = nullptr;
  std::string backend;
  uint32_t cores = 0, repeat = 0;
  uint32_t threads = 0;        // of the host
  uint32_t threads_asked = 0;  // 0: as many as this machine gives it
};
// All that a point's result depends on, the same on each machine that may run it; `simulator`: as
// simulator_json().
Json identity_json(const PointId& id, const Json& simulator);
// "sobel-simd-64-1-0123abcd": a file's name without its ending. Different identities have
// different names.
std::string point_name(const PointId& id, const Json& identity);
// Options of `gpusim` from "run" on, statistics into `stats`.
std::vector<std::string> point_command(const PointId& id, const std::string& stats);

struct Part {
  std::string name;  // a function or a line; "" where not known
  ClassCounts classes{};
};
struct Bin {  // of neighbouring cores
  uint32_t cores = 0;
  double mean = 0;  // instructions
  uint64_t least = 0, most = 0;
  ClassCounts classes{};
};
struct Lanes {  // keys `divergence` and `waiting` of statistics
  std::optional<double> diverged_share, waiting_share;
};
struct SimulatedTime {
  std::string target;
  double cycles = 0, seconds = 0;
};

// Key `chip` of statistics.
struct ChipRun {
  using Parts = std::vector<std::pair<std::string, double>>;
  std::string name;
  double cycles = 0, seconds = 0, instructions_per_cycle = 0;
  Parts stack;  // cycles of all cores together, by what they did
  double joules = 0;
  Parts energy;  // joules
};

struct Point {
  // ok; failed: the guest or gpusim ended with an error; timeout
  std::string status = "failed";
  int exit_status = 0;
  std::string message;  // of a failure
  std::string label, backend_asked;
  uint32_t cores = 0, repeat = 0, threads = 0;
  std::vector<std::string> command;
  std::string started;
  double wall_seconds = 0, cpu_seconds = 0, load = -1;
  uint64_t max_rss_bytes = 0;
  uint32_t others = 0;  // points that ran beside it when it began
  uint64_t output_bytes = 0;
  std::string output_sha256;
  Json machine;         // where it ran; none: not known
  std::string session;  // what was started together with the process that ran it (Launch)
  uint32_t claim = 0;   // the generation of that process's claim

  // Of statistics; 0 and empty for a point that failed.
  std::string isa, backend, device;
  uint64_t instructions = 0, micro_ops = 0;
  ClassCounts classes{};
  double seconds = 0, mips = 0;
  bool memory_is_placed = false;
  std::vector<Part> functions, lines;
  uint64_t busiest = 0, least = 0;  // instructions of one core
  uint32_t active_cores = 0;
  std::vector<Bin> bins;
  Lanes lanes;
  std::optional<SimulatedTime> simulated_time;
  std::optional<ChipRun> chip;
  energy::LongestCores longest_cores;  // they bound a target's time

  bool ok() const { return status == "ok"; }
  // Of the chip, or of simulated time; 0: neither.
  double cycles() const {
    return chip ? chip->cycles : simulated_time ? simulated_time->cycles : 0;
  }
  // Of the busiest core: cycles where there is a simulated time, else instructions.
  double work() const;
};

// Adds what a file of `gpusim run --stats --per-core` says. Throws Error.
void read_statistics(const std::string& path, Point& point);

Json chip_json(const ChipRun& chip);
Json point_json(const Point& point, const Json& identity);
// Nothing if the file is not there, damaged, or of another identity.
std::optional<Point> load_point(const std::string& path, const Json& identity);
// Whatever its identity: for comparisons. Throws Error.
Point point_of_json(const Json& json, const std::string& where);

}  // namespace gpusim::sweep
