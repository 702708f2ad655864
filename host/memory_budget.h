// How much of this machine's memory a run may take: judged before it begins, as far as that can be
// known, and watched while it runs. ADR 0024.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device_sim/core/machine_state.h"
#include "host/memory_plan.h"

namespace gpusim::host {

// What this process could still take without swapping: of the machine, or of the control group that
// it is in, version 1 or 2, whichever has less. The folders are those of tests.
uint64_t available_memory(const std::string& proc = "/proc",
                          const std::string& cgroups = "/sys/fs/cgroup");

struct MemoryBudget {
  uint64_t bytes = 0;
  bool is_given = false;     // by --host-memory; else a share of what is available
  std::string text() const;  // for messages: "--host-memory 64.0 MiB"
};
// `asked_for`: 0 for the default, of a process that has `used` bytes already.
MemoryBudget memory_budget(uint64_t asked_for, uint64_t used = 0);

// What a run takes before its first instruction, at least.
struct RunShape {
  const MemoryPlan* plan = nullptr;
  std::string backend;
  uint64_t start_bytes = 0;  // arguments and environment, on each stack
  bool per_core_statistics = false;
  uint64_t journal_words = 0;  // per core
};
struct MemoryNeed {
  std::string what;
  uint64_t bytes = 0;
};
std::vector<MemoryNeed> known_needs(const Module& module, const RunShape& shape);
// Throws Error if they exceed the budget.
void judge_needs(const std::vector<MemoryNeed>& needs, const MemoryBudget& budget, uint32_t cores);

// Looks at this process's memory 50 to 1,000 times a second. When it exceeds the budget, the slice
// that runs is ended, unless the budget was not given and the machine has more to give by now; if
// that is not enough, guest memory is given back, and what its cores compute until the slice is
// over is worth nothing. Elsewhere than in a slice, where only gpusim itself can take memory, the
// program ends if the budget is exceeded by a quarter. In a process of others, what it had at first
// does not count, and between slices nothing does: it is theirs.
class MemoryWatch {
 public:
  // `memory`: null where guest memory is not in this process.
  MemoryWatch(const MemoryBudget& budget, CpuMachineState* memory, bool owns_process = true);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  void begin_slice();
  // False: there was not enough memory, and the run is over. Nothing changes memory from here on.
  bool end_slice();

 private:
  void watch();
  uint64_t process_bytes() const;
  uint64_t look();  // -> bytes that this process has and that count

  MemoryBudget budget_;
  CpuMachineState* const memory_;
  const bool owns_process_;
  uint64_t bytes_before_ = 0;  // that do not count
  int statm_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool quits_ = false, in_slice_ = false, is_exceeded_ = false;
  bool is_near_ = false;  // at the last look
  std::thread thread_;
};

// Who has the memory, and what to do about it; for a run that MemoryWatch ended.
std::string describe_exhaustion(const MemoryBudget& budget, const Module& module,
                                const MemoryPlan& plan, Backend& backend);

}  // namespace gpusim::host
