#include "host/linux/wait_queue.h"

#include <doctest/doctest.h>

namespace gpusim::host {
namespace {

Waiter waiter(uint32_t core, uint64_t address, uint32_t space = 0) {
  return {.core = core,
          .resume_uop = core,
          .space = space,
          .address = address,
          .bitset = ~uint32_t{0},
          .deadline = {},
          .timeout_result = -110};
}

TEST_CASE("waiters wake in the order of their arrival, per address space") {
  WaitQueue queue;
  for (uint32_t core : {5u, 1u, 3u}) queue.park(waiter(core, 0x1000));
  queue.park(waiter(7, 0x1000, /*space=*/1));
  const auto woken = queue.wake(0, 0x1000, 2, ~uint32_t{0});
  REQUIRE(woken.size() == 2);
  CHECK(woken[0].core == 5);
  CHECK(woken[1].core == 1);
  CHECK(queue.wake(0, 0x1000, 10, ~uint32_t{0}).size() == 1);
  CHECK(queue.wake(0, 0x2000, 10, ~uint32_t{0}).empty());
  CHECK(queue.all().size() == 1);
  queue.remove(7);
  CHECK(queue.empty());
}

TEST_CASE("a waiter with another number keeps its turn, its deadline and all that it waits for") {
  WaitQueue queue;
  const Clock::time_point now = Clock::now();
  Waiter timed = waiter(1, 8);
  timed.deadline = now + std::chrono::seconds(1);
  queue.park(timed);
  queue.park(waiter(1, 16));
  queue.park(waiter(2, 8));
  queue.move(1, 70);
  queue.move(3, 71);  // waits for nothing
  CHECK(queue.find(1) == nullptr);
  REQUIRE(queue.find(70));
  CHECK(queue.find(70)->address == 8);
  CHECK(queue.next_deadline() == timed.deadline);
  const auto woken = queue.wake(0, 8, 1, ~uint32_t{0});
  REQUIRE(woken.size() == 1);
  CHECK(woken[0].core == 70);
  CHECK(queue.wake(0, 16, 1, ~uint32_t{0}).empty());
  CHECK_FALSE(queue.next_deadline());
  queue.move(2, 1);
  CHECK(queue.wake(0, 8, 1, ~uint32_t{0})[0].core == 1);
  CHECK(queue.empty());
}

TEST_CASE("bit sets choose whom to wake") {
  WaitQueue queue;
  Waiter a = waiter(1, 8), b = waiter(2, 8);
  a.bitset = 1;
  b.bitset = 2;
  queue.park(a);
  queue.park(b);
  const auto woken = queue.wake(0, 8, 10, 2);
  REQUIRE(woken.size() == 1);
  CHECK(woken[0].core == 2);
}

TEST_CASE("deadlines pass in order; a waking takes the deadline away") {
  WaitQueue queue;
  const Clock::time_point now = Clock::now();
  Waiter a = waiter(1, 8), b = waiter(2, 8);
  a.deadline = now + std::chrono::seconds(2);
  b.deadline = now + std::chrono::seconds(1);
  queue.park(a);
  queue.park(b);
  CHECK(queue.next_deadline() == b.deadline);
  CHECK(queue.expire(now).empty());
  CHECK(queue.wake(0, 8, 1, ~uint32_t{0})[0].core == 1);
  const auto expired = queue.expire(now + std::chrono::seconds(3));
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].core == 2);
  CHECK_FALSE(queue.next_deadline());
}

TEST_CASE("requeued waiters wait on the other futex") {
  WaitQueue queue;
  for (uint32_t core = 0; core < 4; ++core) queue.park(waiter(core, 16));
  CHECK(queue.requeue(0, 16, 32, 3) == 3);
  CHECK(queue.wake(0, 16, 10, ~uint32_t{0}).size() == 1);
  CHECK(queue.wake(0, 32, 10, ~uint32_t{0}).size() == 3);
}

TEST_CASE("a plain wake passes nobody who waits for a lock; such locks are known by address") {
  WaitQueue queue;
  Waiter owner_to_be = waiter(1, 64);
  owner_to_be.kind = Waiter::Kind::kPi;
  owner_to_be.pi_owner = 77;
  queue.park(owner_to_be);
  queue.park(waiter(2, 64));
  CHECK(queue.wake(0, 64, 10, ~uint32_t{0}).empty());
  REQUIRE(queue.first(0, 64));
  CHECK(queue.first(0, 64)->core == 1);
  CHECK(queue.first(0, 72) == nullptr);
  CHECK(queue.locks_of(0, 77) == std::vector<uint64_t>{64});
  CHECK(queue.locks_of(1, 77).empty());
  queue.set_owner(0, 64, 78);
  CHECK(queue.locks_of(0, 77).empty());
  CHECK(queue.find_lock(0, 64)->owner == 78);
  queue.remove(1);
  CHECK(queue.find_lock(0, 64) == nullptr);
  CHECK(queue.find(1) == nullptr);
  CHECK(queue.find(2) != nullptr);
  CHECK(queue.wake(0, 64, 10, ~uint32_t{0}).size() == 1);
}

TEST_CASE("deadlines on the CPU clock are their own") {
  WaitQueue queue;
  Waiter a = waiter(1, 0);
  a.cpu_deadline = std::chrono::nanoseconds(50);
  queue.park(a);
  CHECK_FALSE(queue.next_deadline());
  CHECK(queue.has_cpu_deadlines());
  CHECK(queue.expire(Clock::now() + std::chrono::hours(1)).empty());
  CHECK(queue.expire_on_cpu_clock(std::chrono::nanoseconds(49)).empty());
  CHECK(queue.expire_on_cpu_clock(std::chrono::nanoseconds(50)).size() == 1);
  CHECK_FALSE(queue.has_cpu_deadlines());
}

TEST_CASE("what ends one wait of a core ends all of them") {
  WaitQueue queue;
  for (const uint64_t address : {8u, 16u, 16u, 24u}) {
    Waiter one = waiter(1, address);
    one.wake_result = static_cast<int64_t>(address);
    one.deadline = Clock::time_point{std::chrono::seconds(5)};
    queue.park(one);
  }
  queue.park(waiter(2, 16));
  CHECK(queue.requeue(0, 8, 32, 5) == 1);
  CHECK(queue.requeue(0, 24, 24, 5) == 1);
  CHECK(queue.wake(0, 8, 5, ~uint32_t{0}).empty());
  const auto woken = queue.wake(0, 16, 5, ~uint32_t{0});
  REQUIRE(woken.size() == 2);
  CHECK(woken[0].core == 1);
  CHECK(woken[0].wake_result == 16);
  CHECK(woken[1].core == 2);
  CHECK(queue.empty());
  CHECK_FALSE(queue.next_deadline());
  queue.park(waiter(1, 8));
  queue.park(waiter(1, 16));
  CHECK(queue.take(1)->address == 8);
  CHECK(queue.empty());
}

}  // namespace
}  // namespace gpusim::host
