// A guest thread: what Linux keeps for it besides its registers, and whether it lives (ThreadTable).
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/linux/signals.h"

namespace gpusim::host {

class OpenFile;

struct Thread {
  int64_t tid = 0;
  uint64_t clear_child_tid = 0;  // zeroed, and its futex woken, when the thread ends
  uint64_t robust_list = 0;      // locks to set free when the thread ends
  uint64_t mask = 0;
  std::optional<uint64_t> saved_mask;  // to come back after a call that waits with another mask
  SignalQueue pending;
  SignalStack alternate_stack;
  std::string name;
  // Of a call that is tried again until it succeeds.
  std::optional<std::chrono::steady_clock::time_point> retry_deadline;
  uint64_t retry_done = 0;  // bytes that it has moved so far
  std::shared_ptr<OpenFile> opening;             // a named pipe that has no writer yet
  std::optional<uint32_t> waits_for_lock_of;     // fcntl: the process that has it
  uint32_t turn_used = 0;                        // RunQueue
  uint64_t round = 0;                            // in which it had that turn
};

}  // namespace gpusim::host
