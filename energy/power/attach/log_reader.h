// What a program did on the GPU, as the preloaded library wrote it down.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "energy/power/attach/record.h"
#include "energy/power/sample.h"

namespace gpusim::power::attach {

// Times are of CLOCK_MONOTONIC, as those of real power sources.
struct Call {
  std::string name;
  Seconds begin, end;
  uint32_t thread = 0;
  int result = 0;
  bool is_runtime = false;
};

struct Operation {
  RecordKind kind = RecordKind::kKernel;
  std::string name;
  Seconds begin, end;
  uint32_t thread = 0, device = 0;
  uint64_t stream = 0, bytes = 0;
  uint32_t blocks = 0, threads = 0;  // of a kernel; threads of a block
  bool is_estimated = false;         // times are the host's
};

struct ProcessLog {
  uint32_t pid = 0;
  std::string pci_bus;  // of the first device used
  Timing timing = Timing::kSynchronous;
  std::vector<Call> calls;            // by their beginning
  std::vector<Operation> operations;  // by their beginning
  std::vector<std::string> notes;
  uint64_t dropped = 0, unfinished = 0;
};

// Throws Error where the file is none of ours or is damaged.
ProcessLog read_log(const std::string& path);
// All logs of a folder, by their beginning.
std::vector<ProcessLog> read_logs(const std::string& folder);

// "_Z5heavyPii" as a person wrote it: "heavy(int*, int)". Other names as they are.
std::string readable(const std::string& name);

}  // namespace gpusim::power::attach
