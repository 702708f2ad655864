// What `--check uninitialised` found, for the user.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/run/call_frames.h"
#include "host/uninitialised/machine.h"

namespace gpusim::host::uninitialised {

struct ReportedFinding {
  Use use{};
  uint32_t core = 0;  // that came first
  uint64_t pc = 0;
  std::string call;                           // a system call's name
  uint64_t size_bytes = 0, first_offset = 0;  // see Finding
  std::vector<CallFrame> stack;               // the innermost first
  uint64_t count = 0;

  // Where the value was loaded, if that is known.
  struct Source {
    uint32_t core = 0;
    uint64_t pc = 0, address = 0;
    uint32_t size_bytes = 0;
    std::string object;  // "the stack of core 3", "buffer+0x10", "a block of 40 bytes"
    std::vector<CallFrame> stack;
    bool is_heap = false, is_freed = false;
    uint64_t block_bytes = 0, offset = 0;  // is_heap
    std::vector<CallFrame> allocation;     // is_heap
  };
  std::optional<Source> source;
};
struct UninitialisedReport {
  std::vector<ReportedFinding> findings;  // one for two source lines, in the order they were seen
  // Between a use and a load that are both in a C library or a run-time system: not listed.
  uint64_t in_libraries = 0;
};

UninitialisedReport make_report(const CheckedMachine& machine, const Module& module,
                                const MachineConfig& config, CallFrames& frames);
std::string report_text(const UninitialisedReport& report);
nlohmann::ordered_json report_json(const UninitialisedReport& report);

}  // namespace gpusim::host::uninitialised
