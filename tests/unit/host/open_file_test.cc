// Files that a guest has open.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host/linux/file_table.h"

namespace gpusim::host {
namespace {

TEST_CASE("a timer changes by itself until what it counted was read") {
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  REQUIRE(fd >= 0);
  const OpenFile file(fd, /*owned=*/true, OpenFile::Kind::kTimer);
  CHECK_FALSE(file.changes_by_itself());
  const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
  REQUIRE(timerfd_settime(fd, 0, &soon, nullptr) == 0);
  // A read that found it empty just before it expired would wait for ever otherwise.
  pollfd expired{.fd = fd, .events = POLLIN, .revents = 0};
  REQUIRE(poll(&expired, 1, -1) == 1);
  CHECK(file.changes_by_itself());
  uint64_t times = 0;
  REQUIRE(read(fd, &times, sizeof times) == sizeof times);
  CHECK_FALSE(file.changes_by_itself());
}

}  // namespace
}  // namespace gpusim::host
