// What `--check races` found, for the user.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/races/detector.h"

namespace gpusim::host::races {

struct ReportedAccess {
  uint32_t core = 0;
  uint64_t pc = 0;
  std::string function, source;  // "" where a source line is not known
  const char* what = "";         // "reads", "writes", "updates atomically"
};
struct ReportedRace {
  ReportedAccess first, second;  // the first as the detector saw them
  std::string object;            // "total", "cells+0x10", "the stack of core 3", "0x41234"
  uint64_t address = 0;
  uint32_t bytes = 0;
  uint64_t count = 0;
};
struct RaceReport {
  std::vector<ReportedRace> races;  // one for two source lines; most often seen first
  // Between two places of a C library or a run-time system: their own affair, and not listed.
  uint64_t in_libraries = 0;
  uint64_t accesses = 0;
  uint64_t shared_clocks = 0;  // see Clocks
};

// `program`: the file that tells source lines.
RaceReport make_report(Detector& detector, const Module& module, const MachineConfig& config,
                       const std::string& program);
std::string report_text(const RaceReport& report);
nlohmann::ordered_json report_json(const RaceReport& report);

}  // namespace gpusim::host::races
