// How long the daemon looks for work, by a clock of the test's.
#include <doctest/doctest.h>

#include "qemu_bridge/daemon/idle_spin.h"

namespace gpusim::daemon {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A look takes 1 us.
struct Daemon {
  IdleSpin spin{microseconds(200)};
  IdleSpin::Clock::time_point time{std::chrono::hours(1)};

  // Until it sleeps, or for so long; returns how long it looked.
  nanoseconds look(nanoseconds most = std::chrono::hours(1)) {
    const auto begin = time;
    for (; time - begin < most; time += microseconds(1))
      if (!spin.goes_on(time)) break;
    return time - begin;
  }
  // Work comes after so long, on a processor that does it whether the daemon looks or not.
  bool finds(nanoseconds after) {
    const auto at = time + after;
    const bool found = look(after) == after;
    time = at;
    spin.worked();
    return found;
  }
  // Work comes only when the daemon sleeps.
  nanoseconds shares() {
    const nanoseconds looked = look();
    time += microseconds(50);
    spin.worked();
    return looked;
  }
};

}  // namespace

TEST_CASE("the daemon finds what comes soon, without a pause") {
  Daemon d;
  for (int i = 0; i < 10'000; ++i) CHECK(d.finds(microseconds(5 + i % 100)));
}

TEST_CASE("a guest that pauses now and then does not stop the daemon's looking") {
  Daemon d;
  for (int i = 0; i < 1000; ++i) {
    CHECK(d.finds(microseconds(5)));
    CHECK(!d.finds(milliseconds(3)));
  }
}

TEST_CASE("where the work comes only while it sleeps, the daemon sleeps") {
  Daemon d;
  const auto begin = d.time;
  nanoseconds looked{0};
  while (d.time - begin < std::chrono::seconds(10)) looked += d.shares();
  CHECK(looked >= microseconds(200) * 100);  // it tries again,
  CHECK(looked <= microseconds(200) * 150);  // but not often
  SUBCASE("and it looks again once that pays") {
    d.time += IdleSpin::kLongestPause;
    CHECK(d.finds(microseconds(5)));
    CHECK(d.look() == microseconds(200));
    d.spin.worked();
    CHECK(d.look() == microseconds(200));
    CHECK(d.look() == nanoseconds(0));  // the second time in vain: a short pause
    d.time += IdleSpin::kFirstPause;
    CHECK(d.look() == microseconds(200));
  }
}

TEST_CASE("a daemon that may not look sleeps at once") {
  IdleSpin spin{nanoseconds(0)};
  CHECK(!spin.goes_on(IdleSpin::Clock::now()));
}

}  // namespace gpusim::daemon
