// Cores that ended in another way than by exit.
#pragma once
#include <cstdint>
#include <string>

#include "device_sim/core/backend.h"
#include "host/memory_plan.h"

namespace gpusim::host {

struct StopRecord {
  uint32_t core = 0;
  uint64_t pc = 0;
  std::string symbol;       // "main+0x10"
  std::string reason;       // "fault: load from memory that is not mapped or not readable"
  std::string instruction;  // disassembly; may be empty
  uint64_t address = 0;
  bool has_address = false;
  int exit_status = 0;
  bool pc_is_return = false;  // the instruction before pc is what counts
  uint32_t report = 0;        // its number in StopReports
};

const char* fault_reason(Fault fault);

// What stopped the core of this event. For a jump that cannot be followed, `fault` is its verdict;
// pc is that of the jump, address where it goes.
StopRecord describe_fault(const Module& module, const MemoryPlan& plan, const Event& event,
                          Fault fault);
// The core came to code that the program made, and that is not executed there; `why` ends the
// sentence "this code was written by the program itself".
StopRecord describe_written_code(const Module& module, const MemoryPlan& plan, const Event& event,
                                 const std::string& why);
StopRecord describe_limit(const Module& module, const Event& event, uint64_t limit);
StopRecord describe_signal(const Module& module, const Event& event, int signal);

}  // namespace gpusim::host
