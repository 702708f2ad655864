// Cores that sleep in a system call: on a futex, for a time, or both.
#pragma once
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpusim::host {

using Clock = std::chrono::steady_clock;

// A call that a signal interrupts begins anew after the handler: if its handler says SA_RESTART, or
// in any case.
enum class Restart : uint8_t { kNever, kIfWanted, kAlways };

// Set in the number of a space for futexes in memory that is mapped shared. Such a futex is at the
// lowest of its addresses.
inline constexpr uint32_t kSharedSpace = uint32_t{1} << 31;

struct Waiter {
  // kPi: for a lock that hands itself over (FUTEX_LOCK_PI). kRequeuePi: to be moved to `pi_target`.
  enum class Kind : uint8_t { kPlain, kPi, kRequeuePi };
  uint32_t core = 0;
  uint32_t resume_uop = 0;
  uint32_t space = 0;    // number of the address space, or with kSharedSpace
  uint64_t address = 0;  // of the futex; 0: sleeps for a time only
  uint32_t bitset = ~uint32_t{0};
  std::optional<Clock::time_point> deadline{};
  std::optional<std::chrono::nanoseconds> cpu_deadline{};  // on the process's CPU clock
  int64_t wake_result = 0;          // of the call when it is woken
  int64_t timeout_result = 0;       // when the deadline passes
  int64_t interrupt_result = -EINTR;  // of the call when a signal ends the wait
  uint64_t remaining_at = 0;        // where the time left is stored if a signal ends the wait
  Restart restart = Restart::kNever;
  Kind kind = Kind::kPlain;
  uint64_t pi_target = 0;
  int64_t pi_owner = 0;  // kPi: the thread that has the lock, if this is the first to wait for it
};

class WaitQueue {
 public:
  // A core may wait for several futexes at once: what ends one wait ends them all.
  void park(const Waiter& waiter);
  // At most `count` plain waiters on the futex whose bit sets meet, first come first served; none
  // behind a waiter of another kind.
  std::vector<Waiter> wake(uint32_t space, uint64_t address, uint64_t count, uint32_t bitset);
  // Moves at most `count` plain waiters to another futex; returns how many.
  uint64_t requeue(uint32_t space, uint64_t from, uint64_t to, uint64_t count);
  // Those whose deadlines have passed.
  std::vector<Waiter> expire(Clock::time_point now);
  std::vector<Waiter> expire_on_cpu_clock(std::chrono::nanoseconds now);
  void remove(uint32_t core) { take(core); }
  std::optional<Waiter> take(uint32_t core);  // the first, of several
  // The thread that waits is known by another number.
  void move(uint32_t from, uint32_t to);

  bool empty() const { return waiters_.empty(); }
  // Null: nobody.
  const Waiter* first(uint32_t space, uint64_t address) const;
  const Waiter* find(uint32_t core) const;
  // A lock for which somebody waits: the word may say otherwise, if the program changed it.
  struct PiLock {
    uint32_t waiters = 0;
    int64_t owner = 0;  // its thread
  };
  const PiLock* find_lock(uint32_t space, uint64_t address) const;
  void set_owner(uint32_t space, uint64_t address, int64_t owner);
  // Where the locks of that owner are.
  std::vector<uint64_t> locks_of(uint32_t space, int64_t owner) const;
  std::optional<Clock::time_point> next_deadline() const;
  bool has_cpu_deadlines() const { return !cpu_deadlines_.empty(); }
  std::vector<Waiter> all() const;         // by core
  std::vector<Waiter> in_arrival() const;  // the first to come first

 private:
  struct Key {
    uint32_t space;
    uint64_t address;
    uint64_t order;  // of arrival
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): wrongly found
  };
  bool is_on(std::map<Key, Waiter>::const_iterator it, uint32_t space, uint64_t address) const {
    return it != waiters_.end() && it->first.space == space && it->first.address == address;
  }
  void erase(uint32_t core);
  template <class Deadlines, class Time>
  std::vector<Waiter> expire(const Deadlines& deadlines, Time now);

  std::map<Key, Waiter> waiters_;
  std::multimap<uint32_t, Key> by_core_;
  std::set<std::pair<Clock::time_point, uint32_t>> deadlines_;
  std::set<std::pair<std::chrono::nanoseconds, uint32_t>> cpu_deadlines_;
  std::map<std::pair<uint32_t, uint64_t>, PiLock> locks_;  // by space and address
  uint64_t arrivals_ = 0;
};

}  // namespace gpusim::host
