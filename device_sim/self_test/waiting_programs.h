// Programs whose cores wait for each other, as micro-ops: locks, counters, barriers.
#pragma once
#include "device_sim/uir/module.h"

namespace gpusim::self_test {

// Words in the linear zone that they use, each on a cache line of its own. All begin as zero.
inline constexpr uint64_t kMemory = 0x10000;
inline constexpr uint64_t kNext = kMemory, kServing = kMemory + 64, kCount = kMemory + 128,
                          kArrived = kMemory + 192, kGeneration = kMemory + 256;

// What they find in registers: kRounds, how often; kCores; kLast, kCores - 1; kCoreId.
enum WaitingSlots : Slot {
  kA, kB, kC, kT, kOne, kRounds, kMark, kSeen, kCores, kLast, kCoreId, kMonitor, kMonitorData,
  kWaitingSlots
};

// What a waiting core does before it looks again.
enum class How {
  kSpin,
  kYield,
  kWatch,  // waits for a store to the word that it looked at
  kEvent,  // waits for a signalled event
};
inline bool gives_way(How how) { return how != How::kSpin; }

// Each ends with a breakpoint, and kCount as rounds times cores.
Module ticket_lock(How how);
Module swap_lock(How how);
Module exclusive_counter(How how);
// Cores arrive; the last one opens the next generation. A core for which it opened too early traps.
Module barrier(How how);
// In one round core i waits for core i - 1: the order in which groups run must not matter.
Module relay(How how);

}  // namespace gpusim::self_test
