// Record locks between guest processes, and with other programs of the host. What one process sees
// of its own locks, tests/differential/programs/libc/record_locks.c compares with Linux.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>

#include "device_sim/base/file_descriptor.h"
#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(-100), kFcntl = 25;

struct GuestFlock {
  int16_t type = 0, whence = 0;
  int32_t pad = 0;
  int64_t start = 0, length = 0;
  int32_t pid = 0, pad2 = 0;
};

struct LockMachine : Machine {
  const fs::path path = folder / "locked";
  explicit LockMachine(uint32_t cores = 3) : Machine(MemoryModel::kPrivate, cores) {
    for (uint32_t core = 0; core < cores; ++core) REQUIRE(open_on(core) == 3);
  }
  int64_t open_on(uint32_t core) {
    put(kBuffer, path, core);
    return result(56, {kHere, kBuffer, kReadWrite | kCreate, 0644}, core);
  }
  Reply lock(uint32_t core, int command, int16_t type, int64_t start, int64_t length) {
    store(kBuffer, GuestFlock{.type = type, .start = start, .length = length}, core);
    return call(core, kFcntl, {3, static_cast<uint64_t>(command), kBuffer});
  }
  int64_t set(uint32_t core, int16_t type, int64_t start, int64_t length) {
    const Reply reply = lock(core, F_SETLK, type, start, length);
    CHECK(reply.kind == Reply::Kind::kResult);
    return reply.value;
  }
  GuestFlock find(uint32_t core) {
    CHECK(lock(core, F_GETLK, F_WRLCK, 0, 0).value == 0);
    return load<GuestFlock>(kBuffer, core);
  }
  int64_t result_of(uint32_t core) { return static_cast<int64_t>(backend->slot(core, 0)); }
};

TEST_CASE("processes exclude each other and learn who has a lock") {
  LockMachine m;
  CHECK(m.set(0, F_WRLCK, 10, 10) == 0);
  CHECK(m.set(1, F_WRLCK, 15, 1) == -EAGAIN);
  CHECK(m.set(1, F_RDLCK, 20, 0) == 0);
  CHECK(m.set(2, F_RDLCK, 20, 5) == 0);
  const GuestFlock first = m.find(1);
  CHECK(first.type == F_WRLCK);
  CHECK(first.start == 10);
  CHECK(first.length == 10);
  CHECK(first.pid == kFirstPid);
  CHECK(m.find(0).pid == kFirstPid + 1);  // 20 to the end comes first
  CHECK(m.set(0, F_UNLCK, 0, 0) == 0);
  CHECK(m.set(1, F_WRLCK, 15, 1) == 0);
}

TEST_CASE("a lock goes with any descriptor of its file, and with its process") {
  LockMachine m;
  CHECK(m.set(0, F_WRLCK, 0, 1) == 0);
  CHECK(m.open_on(0) == 4);
  CHECK(m.set(1, F_WRLCK, 0, 1) == -EAGAIN);
  CHECK(m.result(57, {4}, 0) == 0);
  CHECK(m.set(1, F_WRLCK, 0, 1) == 0);
  CHECK(m.set(2, F_WRLCK, 0, 1) == -EAGAIN);
  m.kernel->end_thread(1);
  CHECK(m.set(2, F_WRLCK, 0, 1) == 0);
}

TEST_CASE("who waits gets the lock when it is free; who would close a ring is refused") {
  LockMachine m;
  CHECK(m.set(0, F_WRLCK, 0, 1) == 0);
  CHECK(m.set(1, F_WRLCK, 1, 1) == 0);
  CHECK(m.set(2, F_WRLCK, 2, 1) == 0);
  CHECK(m.lock(0, F_SETLKW, F_WRLCK, 1, 1).kind == Reply::Kind::kParked);
  CHECK(m.lock(1, F_SETLKW, F_WRLCK, 2, 1).kind == Reply::Kind::kParked);
  const Reply last = m.lock(2, F_SETLKW, F_WRLCK, 0, 1);
  CHECK(last.kind == Reply::Kind::kResult);
  CHECK(last.value == -EDEADLK);
  CHECK(m.set(2, F_UNLCK, 2, 1) == 0);
  m.kernel->expire(Clock::now());
  CHECK(!m.kernel->is_parked(1));
  CHECK(m.result_of(1) == 0);
  CHECK(m.kernel->is_parked(0));
  CHECK(m.set(2, F_WRLCK, 2, 1) == -EAGAIN);
}

TEST_CASE("other programs of the host are excluded, too") {
  LockMachine m(1);
  const FileDescriptor other(::open(m.path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(other);
  struct flock lock {
    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 5, .l_pid = 0
  };
  REQUIRE(::fcntl(other.get(), F_OFD_SETLK, &lock) == 0);
  CHECK(m.set(0, F_WRLCK, 9, 1) == -EAGAIN);
  CHECK(m.find(0).start == 5);
  CHECK(m.set(0, F_WRLCK, 10, 1) == 0);
  lock.l_start = 10;
  CHECK(::fcntl(other.get(), F_OFD_SETLK, &lock) < 0);
  lock.l_start = 5;
  lock.l_type = F_UNLCK;
  CHECK(m.lock(0, F_SETLKW, F_WRLCK, 9, 1).kind == Reply::Kind::kParked);
  REQUIRE(::fcntl(other.get(), F_OFD_SETLK, &lock) == 0);
  m.kernel->expire(Clock::now());
  CHECK(!m.kernel->is_parked(0));
  CHECK(m.result_of(0) == 0);
}

}  // namespace
}  // namespace gpusim::host
