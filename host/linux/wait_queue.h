// Cores that sleep in a system call: on a futex, for a time, or both.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpusim::host {

using Clock = std::chrono::steady_clock;

struct Waiter {
  uint32_t core = 0;
  uint32_t resume_uop = 0;
  uint32_t space = 0;    // number of the address space
  uint64_t address = 0;  // of the futex; 0: sleeps for a time only
  uint32_t bitset = ~uint32_t{0};
  std::optional<Clock::time_point> deadline;
  int64_t timeout_result = 0;  // of the call when the deadline passes
  uint64_t remaining_at = 0;   // where the time left is stored if a signal ends the wait
  bool restartable = false;    // after a signal, if its handler wants that
};

class WaitQueue {
 public:
  void park(const Waiter& waiter);
  // At most `count` waiters on the futex whose bit sets meet, first come first served.
  std::vector<Waiter> wake(uint32_t space, uint64_t address, uint64_t count, uint32_t bitset);
  // Moves at most `count` waiters to another futex; returns how many.
  uint64_t requeue(uint32_t space, uint64_t from, uint64_t to, uint64_t count);
  // Those whose deadlines have passed.
  std::vector<Waiter> expire(Clock::time_point now);
  void remove(uint32_t core) { take(core); }
  std::optional<Waiter> take(uint32_t core);

  bool empty() const { return waiters_.empty(); }
  std::optional<Clock::time_point> next_deadline() const;
  std::vector<Waiter> all() const;  // by core

 private:
  friend struct CheckpointAccess;  // host/checkpoint
  struct Key {
    uint32_t space;
    uint64_t address;
    uint64_t order;  // of arrival
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): wrongly found
  };
  void erase(std::map<Key, Waiter>::iterator it);

  std::map<Key, Waiter> waiters_;
  std::map<uint32_t, Key> by_core_;
  std::set<std::pair<Clock::time_point, uint32_t>> deadlines_;
  uint64_t arrivals_ = 0;
};

}  // namespace gpusim::host
