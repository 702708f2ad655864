#include "host/linux/shared_futexes.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <thread>

namespace gpusim::host {
namespace {

constexpr uint32_t kAnyBits = ~uint32_t{0};
constexpr FutexPlace kHere{1, 2, 64}, kThere{1, 3, 64};

// Processes 0 and up, of one table, which a single one plays in turn.
struct Run {
  std::unique_ptr<FutexTable> table = std::make_unique<FutexTable>();
  std::set<uint32_t> dead, told;
  SharedFutexes::Processes processes;

  Run() {
    REQUIRE(table->begin());
    processes.lives = [this](uint32_t p) { return !dead.contains(p); };
    processes.tell = [this](uint32_t p) { told.insert(p); };
  }
  SharedFutexes as(uint32_t process) {
    processes.own = process;
    return SharedFutexes(*table, processes);
  }
};

TEST_CASE("a waiter with another number keeps its turn in the shared table") {
  Run run;
  CHECK(run.as(0).add(kHere, {.core = 4}));
  CHECK(run.as(1).add(kHere, {.core = 4}));
  CHECK(run.as(0).add(kHere, {.core = 5}));
  run.as(0).move(4, 77);
  const auto woken = run.as(0).wake(kHere, 2, kAnyBits);
  REQUIRE(woken.own.size() == 1);
  CHECK(woken.own[0].core == 77);
  CHECK(woken.others == 1);
}

TEST_CASE("shared futexes wake in the order of arrival, whatever the process") {
  Run run;
  CHECK(run.as(1).add(kHere, {.core = 4}));
  CHECK(run.as(0).add(kHere, {.core = 9, .wake_result = 3}));
  CHECK(run.as(2).add(kHere, {.core = 5}));
  CHECK(run.as(2).add(kThere, {.core = 6}));
  const auto woken = run.as(0).wake(kHere, 2, kAnyBits);
  CHECK(woken.others == 1);
  REQUIRE(woken.own.size() == 1);
  CHECK(woken.own[0].core == 9);
  CHECK(woken.own[0].wake_result == 3);
  CHECK(run.told == std::set<uint32_t>{1});
  CHECK(run.as(2).take_woken().empty());
  const auto taken = run.as(1).take_woken();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].core == 4);
  CHECK(run.as(0).wake(kHere, 9, kAnyBits).others == 1);
  CHECK(run.as(0).wake(kHere, 9, kAnyBits).others == 0);
  CHECK(run.as(2).withdraw(6) == std::nullopt);
  CHECK(run.as(2).withdraw(5) == 0);
  CHECK(run.table->count == 0);
}

TEST_CASE("shared futexes: bit sets, and waiters that move") {
  Run run;
  run.as(1).add(kHere, {.core = 1, .bitset = 1});
  run.as(1).add(kHere, {.core = 2, .bitset = 2});
  run.as(1).add(kHere, {.core = 3, .bitset = 4});
  CHECK(run.as(0).wake(kHere, 9, 2).others == 1);
  CHECK(run.as(0).requeue(kHere, kThere, 1) == 1);
  CHECK(run.as(0).wake(kThere, 9, kAnyBits).others == 1);
  CHECK(run.as(0).wake(kHere, 9, kAnyBits).others == 1);
  const auto taken = run.as(1).take_woken();
  CHECK(taken.size() == 3);
}

TEST_CASE("shared futexes: what ends one wait of a core ends all of them") {
  Run run;
  run.as(1).add(kHere, {.core = 1, .wake_result = 0});
  run.as(1).add(kThere, {.core = 1, .wake_result = 1});
  CHECK(run.as(0).wake(kThere, 1, kAnyBits).others == 1);
  CHECK(run.as(0).wake(kHere, 1, kAnyBits).others == 0);
  CHECK(run.as(1).withdraw(1) == 1);
  CHECK(run.as(1).take_woken().empty());
}

TEST_CASE("shared futexes: a process that died takes no wake-up") {
  Run run;
  run.as(1).add(kHere, {.core = 1});
  run.as(1).add(kHere, {.core = 2});
  run.as(2).add(kHere, {.core = 1});
  run.dead.insert(1);
  CHECK(run.as(0).wake(kHere, 1, kAnyBits).others == 1);
  CHECK(run.told == std::set<uint32_t>{2});
}

TEST_CASE("shared futexes: a thread that ended with the table locked leaves it usable") {
  Run run;
  run.as(1).add(kHere, {.core = 1});
  std::thread([&] {
    pthread_mutex_lock(&run.table->lock);
    run.table->count = 77;
  }).join();
  CHECK(run.as(0).wake(kHere, 1, kAnyBits).others == 1);
  CHECK(run.table->count == 1);
}

}  // namespace
}  // namespace gpusim::host
