// Who waits for futexes in memory that several processes of a run have mapped. The table of the
// waiters is in memory that all of these processes share; docs/adr/0041 has the reasons.
#pragma once
#include <pthread.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace gpusim::host {

// A word of a file. Shared memory without a name is a file of gpusim's own.
struct FutexPlace {
  uint64_t device = 0, inode = 0, offset = 0;
  bool operator==(const FutexPlace&) const = default;
};

struct FutexTable {
  struct Waiter {
    enum State : uint32_t { kFree, kWaits, kWoken };
    State state;
    uint32_t process, core;  // `process`: the number of its entry in the family's table
    uint32_t bitset;
    uint64_t order;  // of arrival
    int64_t wake_result;
    FutexPlace place;
  };
  static constexpr uint32_t kMost = 65536;

  // Of a table that is all zeros. False: the host has no such locks.
  bool begin();

  pthread_mutex_t lock;  // robust: a process may be killed while it has it
  uint64_t arrivals;
  uint32_t used;   // waiters from the first on; those behind are free
  uint32_t count;  // that are not free
  Waiter waiters[kMost];
};

// While it exists no waiter of another process comes or goes. One thread may have several.
class SharedFutexes {
 public:
  // What a process has to know of the others.
  struct Processes {
    uint32_t own = 0;
    std::function<bool(uint32_t process)> lives;
    std::function<void(uint32_t process)> tell;  // that one of its waiters is woken
  };
  SharedFutexes(FutexTable& table, const Processes& processes);
  ~SharedFutexes();
  SharedFutexes(SharedFutexes&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), processes_(other.processes_) {}
  SharedFutexes& operator=(SharedFutexes&&) = delete;

  struct OwnWaiter {
    uint32_t core = 0;
    int64_t wake_result = 0;
  };
  struct Request {
    uint32_t core = 0;
    uint32_t bitset = ~uint32_t{0};
    int64_t wake_result = 0;
  };
  // A core may wait at several places: what ends one wait ends them all. False: the table is full.
  bool add(const FutexPlace& place, const Request& request);
  // Takes at most `count` waiters whose bit sets meet, first come first served: those of this
  // process are returned, the processes of the others are told.
  struct Woken {
    std::vector<OwnWaiter> own;
    uint64_t others = 0;
  };
  Woken wake(const FutexPlace& place, uint64_t count, uint32_t bitset);
  // Moves at most `count` waiters; returns how many.
  uint64_t requeue(const FutexPlace& from, const FutexPlace& to, uint64_t count);
  // The core waits no more. The result of its call if it had been woken already.
  std::optional<int64_t> withdraw(uint32_t core);
  // The waiter of this process is known by another number.
  void move(uint32_t from, uint32_t to);
  // Those of this process that others woke.
  std::vector<OwnWaiter> take_woken();
  // A process has ended.
  void forget(uint32_t process);

 private:
  using Waiter = FutexTable::Waiter;
  std::vector<Waiter*> waiting_at(const FutexPlace& place);
  void free(Waiter& waiter);
  void free_waits(uint32_t process, uint32_t core);

  FutexTable* table_;
  const Processes& processes_;
};

}  // namespace gpusim::host
