// What the processes of a run have in common memory; family*.cpp read and write it.
#pragma once
#include <atomic>
#include <csignal>
#include <cstdint>

#include "host/linux/family.h"
#include "host/linux/shared_futexes.h"

namespace gpusim::host {

// Written by several processes.
struct Family::Entry {
  enum State : uint32_t { kFree, kBegins, kAlive, kEnded };
  // `stop`: the signal that stopped the process, 0 while it is not stopped; and whether its parent
  // has not yet waited for that, or for its going on.
  static constexpr uint32_t kStopSignal = 0xff, kStopIsNews = 0x100, kGoingOnIsNews = 0x200;

  std::atomic<uint32_t> state;
  std::atomic<int32_t> host;  // its number there
  std::atomic<int32_t> pid, parent, group, session, status, sender;
  std::atomic<uint32_t> has_let_go, stop;
  // Of its children: how many ended, how often one was stopped or went on, and what was last; the
  // number in the upper half, the status as wait(2) has it in the lower one.
  std::atomic<uint32_t> children_ended, children_changed;
  std::atomic<uint64_t> last_child;
  std::atomic<uint64_t> signals;
  std::atomic<uint32_t> bell;  // counts what others did that this process should look at
  std::atomic<uint32_t> has_woken_waiters;  // of shared futexes
  // The bell and 1 if nothing but another process of the run can let this one go on; 0: it can go
  // on.
  std::atomic<uint64_t> waits_for_others;
  Usage usage;     // once it ended: its own and its children's
  Usage children;  // of those that it waited for

  bool is_there() const { return state == kBegins || state == kAlive; }
  bool is_stopped() const { return (stop & kStopSignal) != 0; }
};

struct Family::Table {
  static constexpr uint32_t kMost = 4096;  // processes at a time
  std::atomic<int32_t> next_pid, stride;
  std::atomic<uint32_t> used;  // entries from the first on; those behind have never been in use
  Entry entries[kMost];
  FutexTable futexes;

  // Record locks, of which the first ones are known to the others.
  static constexpr uint32_t kMostLocks = 4096;
  struct Lock {
    bool is_used;
    uint32_t process;  // its entry
    int16_t type;      // F_RDLCK, F_WRLCK
    uint64_t device, inode;
    int64_t first, last;
  };
  Lock locks[kMostLocks];
};

}  // namespace gpusim::host
