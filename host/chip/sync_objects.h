// Locks, semaphores and barriers of libraries, played again in simulated time: cores get what they
// ask for in the order in which they ask, whatever the order in which the program's run gave it.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "host/chip/core_model.h"
#include "host/chip/timeline.h"

namespace gpusim::host::chip {

class SyncObjects {
 public:
  // What objects do to cores.
  class Cores {
   public:
    virtual Ticks clock_of(uint32_t core) const = 0;
    // The atomic operation by which a core takes or gives something.
    virtual void access_lock(uint32_t core, const Request& r) = 0;
    virtual void wait_for_lock(uint32_t core) = 0;
    virtual void wait_for_others(uint32_t core) = 0;
    // The core goes on, at `at` or later. `by`: whom it waited for.
    virtual void unblock(uint32_t core, Ticks at, uint32_t by, Phase waited_for) = 0;
    // It goes on as it sees what another core did just now.
    virtual void hand_over(uint32_t next, uint32_t core, const Request& r) = 0;

   protected:
    ~Cores() = default;
  };
  explicit SyncObjects(Cores& cores) : cores_(cores) {}

  // A request of such an object: is_of_object(r.kind).
  void serve(uint32_t core, const Request& r);
  // The core waits for none of them any more.
  void withdraw(uint32_t core);
  // Whether the object's begin was seen, so that it orders those who use it.
  bool is_known(uint64_t word) const;

  uint64_t locks = 0, contended_locks = 0;  // that were taken

 private:
  struct LockState {
    bool is_held = false;
    uint32_t holder = 0;
    std::deque<uint32_t> waiting;
  };
  struct ReadWriteLock {
    uint32_t readers = 0;
    bool is_written = false;
    uint32_t writer = 0;
    std::deque<uint32_t> waiting_readers, waiting_writers;
  };
  // One unit of a semaphore that was given, and when.
  struct Unit {
    Ticks at;
    uint32_t by;
  };
  struct Semaphore {
    bool is_known = false;
    uint32_t initial = 0;  // units that are left of these
    std::deque<Unit> given;
    std::deque<uint32_t> waiting;
  };
  struct CountedBarrier {
    uint32_t count = 0;  // 0: not known
    std::vector<uint32_t> arrived;
  };
  struct OnceState {
    bool is_done = false;
    Unit done{};
    std::vector<uint32_t> waiting;
  };

  void wait_in(std::deque<uint32_t>& waiting, uint32_t core);  // for a lock that is held
  void take_lock(uint32_t core, const Request& r);
  void give_lock(uint32_t core, const Request& r);
  void take_to_read(uint32_t core, const Request& r);
  void take_to_write(uint32_t core, const Request& r);
  void leave(uint32_t core, const Request& r);
  void down(uint32_t core, const Request& r);
  void up(uint32_t core, const Request& r);
  void arrive(uint32_t core, const Request& r);
  void finish_once(uint32_t core, const Request& r);
  void see_once(uint32_t core, const Request& r);

  Cores& cores_;
  std::unordered_map<uint64_t, LockState> locks_;
  std::unordered_map<uint64_t, ReadWriteLock> read_write_locks_;
  std::unordered_map<uint64_t, Semaphore> semaphores_;
  std::unordered_map<uint64_t, CountedBarrier> barriers_;
  std::unordered_map<uint64_t, OnceState> once_;
};

}  // namespace gpusim::host::chip
