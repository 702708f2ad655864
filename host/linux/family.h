// The processes of one run: the program that gpusim started, and what it forked and executed. Each
// is a process of the host with a machine of its own; what they must know of each other is in a
// table that all of them have in memory. docs/adr/0041 has the reasons.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/linux/record_locks.h"
#include "host/linux/shared_futexes.h"
#include "host/linux/signals.h"
#include "host/linux/usage.h"

namespace gpusim::host {

class Family {
 public:
  // The first process. `stride`: between the numbers of processes, room for those of their threads.
  static std::unique_ptr<Family> begin(int32_t first_pid, int32_t stride);
  // One that was executed, from what handover() of its predecessor gave; null: that is nonsense.
  static std::unique_ptr<Family> take_over(int table_fd, uint32_t entry);
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  int32_t pid() const;
  int32_t parent() const;  // number 1 if it has ended
  bool is_first() const { return is_first_; }
  // Whether other processes could still send signals, end, or write to pipes.
  bool has_others() const;
  // The same, or whether there were when this was asked last: what they did last may not have been
  // seen yet.
  bool may_have_others();

  // As fork(2): in the parent the child's number or -errno, 0 in the child.
  int32_t fork();
  // What execve(2) has to hand on: an open descriptor and a number.
  struct Handover {
    int table_fd;
    uint32_t entry;
  };
  Handover handover() const { return {table_fd_, entry_}; }

  // vfork: whether the child has executed a program, or ended; this process does so.
  bool has_let_go(int32_t child) const;
  void let_go();

  // This process ends; `status` as wait(2) has it, `usage` its own.
  void end(int32_t status, const Usage& usage);

  // Notes what others have done so far: it is looked at now.
  void listen();
  // Until then, or until another process has done something since listen() that concerns this one.
  void nap(std::chrono::steady_clock::time_point until) const;

  // Whether only others of the run can let this process go on, or none can.
  void set_waits_for_others(bool waits);
  // All processes wait for others: none will ever go on.
  bool all_wait_for_others() const;

  // --- futexes in shared memory

  SharedFutexes futexes() { return SharedFutexes(futex_table(), processes_); }
  // Whether others woke waiters of this process since the last time.
  bool take_has_woken_waiters();

  // --- record locks

  // What this process has on that file from now on.
  void publish_locks(const RecordLocks::FileId& file,
                     const std::vector<RecordLocks::Range>& ranges);
  void forget_locks();
  // Another process that has that lock of the file; nothing: none of the run is known to have it.
  std::optional<int32_t> holder_of(const RecordLocks::FileId& file, const struct flock& lock);

  // --- children

  // Which children a wait is for.
  struct Which {
    enum class Kind : uint8_t { kAny, kProcess, kGroup } kind = Kind::kAny;
    int64_t id = 0;
  };
  struct News {
    int32_t pid = 0, status = 0;  // as wait(2) has it
    Usage usage;                  // of one that ended
  };
  // What became of a child, the oldest first. `changes`: WEXITED, WSTOPPED and WCONTINUED, as
  // waitid has them. Each is told once, unless it `stays`. pid 0: nothing yet. Nothing: no such
  // child.
  std::optional<News> take_news(const Which& which, int changes, bool stays);
  // Children that ended are nobody's concern.
  void forget_ended();
  // Since the last time: children that ended; how often others were stopped or went on.
  struct Changes {
    uint32_t ended = 0, others = 0;
  };
  Changes count_changes();
  // What the last of these was.
  News last_change() const;
  // Of children that it waited for.
  const Usage& usage_of_children() const;

  // --- signals

  // Sends a signal to another process, or to the others of a group if `to` is negative, or to all
  // others if it is -1. Returns how many there are; -1: none that this process may signal.
  int send(int64_t to, int32_t signal);
  // Processes that were sent SIGKILL this long ago and are still there are killed on the host.
  void see_to_kills(std::chrono::milliseconds patience);
  // What others sent since the last time, by bits, and who was the last to send.
  uint64_t take_signals();
  int32_t last_sender() const;
  // Stops this process, which has to look at is_stopped() before it goes on. Nothing happens where
  // Linux ignores the signal, as nobody could let the process go on.
  void stop(int32_t signal);
  bool is_stopped();

  // Groups and sessions; -errno, or the number.
  int64_t group_of(int64_t pid) const;
  int64_t session_of(int64_t pid) const;
  int64_t set_group(int64_t pid, int64_t group);
  int64_t start_session();

 private:
  struct Entry;
  struct Table;
  Family(int table_fd, Table* table, uint32_t entry);
  std::span<Entry> entries() const;
  Entry& own() const;
  Entry* find(int64_t pid) const;
  std::optional<uint32_t> reserve();
  FutexTable& futex_table() const;
  void become(uint32_t entry, bool is_new);
  bool lives(uint32_t entry) const;
  static void ring(Entry& e);
  bool is_wanted(const Entry& e, const Which& which) const;
  void look_after(Entry& e);
  void tell_parent(const Entry& e, int32_t status, bool has_ended);
  void mark_stopped(Entry& e, int32_t signal);
  void mark_going_on(Entry& e);
  bool is_outermost() const;
  bool has_company();
  bool is_orphaned(int32_t group) const;
  bool links_group(const Entry& e, int32_t group) const;
  void hang_up_if_orphaned(int32_t group);

  int table_fd_;
  Table* table_;
  uint32_t entry_;
  SharedFutexes::Processes processes_;
  struct Kill {
    int32_t pid = 0;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Kill> kills_;
  uint32_t ended_seen_ = 0, changed_seen_ = 0, bell_heard_ = 0;
  bool is_first_ = false;
  bool has_forked_ = true;  // there may be children
  bool had_others_ = false;
  bool waits_for_others_ = false;
};

// SIGCHLD as its handler hears of this, and as waitid(2) tells it.
SignalInfo child_signal(const Family::News& news);

}  // namespace gpusim::host
