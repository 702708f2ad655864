// Cores that ended in another way than by exit: for the user's eyes and for the statistics.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/memory_plan.h"

namespace gpusim::host {

struct StopRecord {
  uint32_t core = 0;
  uint64_t pc = 0;
  std::string symbol;       // "main+0x10"
  std::string reason;       // "load from memory that is not mapped or not readable"
  std::string instruction;  // disassembly; may be empty
  uint64_t address = 0;
  bool has_address = false;
  int exit_status = 0;

  std::string text() const;  // the line that the user reads
};

const char* fault_reason(Fault fault);

// What stopped the core of this event. For a jump that cannot be followed, `fault` is its verdict;
// pc is that of the jump, address where it goes.
StopRecord describe_fault(const Module& module, const MemoryPlan& plan, const Event& event,
                          Fault fault);
StopRecord describe_limit(const Module& module, const Event& event, uint64_t limit);
StopRecord describe_signal(const Module& module, const Event& event, int signal);

// Prints the first few records, and how many more there were of each kind at the end.
class StopPrinter {
 public:
  explicit StopPrinter(std::function<void(const std::string&)> line) : line_(std::move(line)) {}
  void add(const StopRecord& record);
  void finish();

 private:
  friend struct CheckpointAccess;  // host/checkpoint
  struct More {
    std::string what;  // reason and symbol
    uint64_t cores = 0;
  };
  static constexpr uint64_t kMost = 8;
  std::function<void(const std::string&)> line_;
  uint64_t printed_ = 0;
  std::vector<More> more_;
};

}  // namespace gpusim::host
