// Files that a guest has open.
#include <doctest/doctest.h>
#include <sys/timerfd.h>

#include <chrono>

#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

// Who finds a timer empty and then asks whether it is armed may miss that it expired in between, and
// wait for ever. Timers that expire about when they are read: in thousands, some do just then.
TEST_CASE("a timer that expires while it is read is not forgotten") {
  constexpr uint64_t kTimerCreate = 85, kTimerSet = 86, kRead = 63;
  Machine m;
  const int64_t fd = m.result(kTimerCreate, {CLOCK_MONOTONIC, 0});
  REQUIRE(fd >= 0);
  int parked = 0;
  for (int64_t i = 0; i < 20'000; ++i) {
    const int64_t due[4] = {0, 0, 0, 1 + i % 20'000};  // ns
    m.store(kBuffer, due);
    REQUIRE(m.result(kTimerSet, {static_cast<uint64_t>(fd), 0, kBuffer, 0}) == 0);
    if (m.call(0, kRead, {static_cast<uint64_t>(fd), kBuffer + 64, 8}).kind ==
        Reply::Kind::kResult)
      continue;
    ++parked;
    while (m.kernel->is_parked(0)) {
      REQUIRE(m.kernel->next_deadline(Clock::now()));  // else the run is over: a deadlock
      m.kernel->expire(Clock::now());
    }
  }
  CHECK(parked > 0);
}

}  // namespace
}  // namespace gpusim::host
