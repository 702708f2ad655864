// What run control asks a debugger. Each call comes between two slices.
#pragma once
#include <cstdint>

#include "device_sim/core/backend.h"

namespace gpusim::host {

class DebugHook {
 public:
  virtual ~DebugHook() = default;
  virtual uint64_t longest_slice() = 0;  // in instructions
  virtual void before_slice() = 0;
  virtual void slice_has_run() = 0;  // nothing was done since
  // A core stopped at a fault, or jumped to where there is no code (CoreStatus::kJump). True: the
  // debugger has the core now, and nothing else happens to it.
  virtual bool keeps(const Event& event, Fault fault) = 0;
  // A signal is about to end the core's process. True: the same.
  virtual bool keeps_ending(uint32_t core, int signal) = 0;
  // Cores that run can never go on. True: the debugger stops the run, which is not at its end.
  virtual bool keeps_waiting() = 0;
};

}  // namespace gpusim::host
