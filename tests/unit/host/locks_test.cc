// Locks that the kernel hands over, robust lists, timers and limits, without running any code.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>

#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kLock = kBuffer, kOther = kBuffer + 8, kHead = kBuffer + 64;
constexpr uint64_t kLockPi = 6, kUnlockPi = 7, kTrylockPi = 8;
constexpr uint32_t kTid = kFirstPid, kWaiters = 0x80000000, kDied = 0x40000000;

uint32_t word(Machine& m, uint64_t address) { return m.load<uint32_t>(address); }

TEST_CASE("an unlocked word goes to the first who waits, marked as waited for") {
  Machine m;
  CHECK(m.result(98, {kLock, kLockPi}, 0) == 0);
  CHECK(word(m, kLock) == kTid);
  CHECK(m.result(98, {kLock, kLockPi}, 0) == -EDEADLK);
  CHECK(m.result(98, {kLock, kTrylockPi}, 1) == -EAGAIN);
  CHECK(m.call(2, 98, {kLock, kLockPi}).kind == Reply::Kind::kParked);
  CHECK(m.call(1, 98, {kLock, kLockPi}).kind == Reply::Kind::kParked);
  CHECK(word(m, kLock) == (kTid | kWaiters));
  CHECK(m.result(98, {kLock, kUnlockPi}, 3) == -EPERM);
  CHECK(m.result(98, {kLock, 1, 9}, 3) == -EINVAL);  // FUTEX_WAKE
  CHECK(m.result(98, {kLock, kUnlockPi}, 0) == 0);
  CHECK(word(m, kLock) == ((kTid + 2) | kWaiters));
  CHECK_FALSE(m.kernel->is_parked(2));
  CHECK(m.kernel->is_parked(1));
}

TEST_CASE("a ring of three owners is a deadlock for who closes it") {
  Machine m;
  for (uint32_t core = 0; core < 3; ++core)
    CHECK(m.result(98, {kLock + 4 * core, kLockPi}, core) == 0);
  CHECK(m.call(0, 98, {kLock + 4, kLockPi}).kind == Reply::Kind::kParked);
  CHECK(m.call(1, 98, {kLock + 8, kLockPi}).kind == Reply::Kind::kParked);
  CHECK(m.result(98, {kLock, kLockPi}, 2) == -EDEADLK);
  CHECK(m.call(3, 98, {kLock, kLockPi}).kind == Reply::Kind::kParked);  // not in the ring
}

TEST_CASE("a word that the program changed: the kernel goes by what it knows") {
  Machine m;
  CHECK(m.result(98, {kLock, kLockPi}, 1) == 0);
  CHECK(m.result(98, {kOther, kLockPi}, 2) == 0);
  CHECK(m.call(1, 98, {kOther, kLockPi}).kind == Reply::Kind::kParked);
  m.store<uint32_t>(kOther, (kTid + 1) | kWaiters);  // core 1 seems to wait for itself
  CHECK(m.call(0, 98, {kLock, kLockPi}).kind == Reply::Kind::kParked);
  CHECK(m.result(98, {kOther, kLockPi}, 3) == -EINVAL);
  m.store<uint32_t>(kOther, 0);
  CHECK(m.result(98, {kOther, kLockPi}, 3) == -EINVAL);
  m.store<uint32_t>(kOther, kTid + 3);
  CHECK(m.result(98, {kOther, kUnlockPi}, 3) == -EINVAL);
  // As musl leaves it before a thread ends.
  m.store<uint32_t>(kOther, kDied);
  m.kernel->end_thread(2);
  CHECK(word(m, kOther) == ((kTid + 1) | kWaiters | kDied));
  CHECK_FALSE(m.kernel->is_parked(1));
}

TEST_CASE("who waits for a thread that ends gets its lock and hears of it") {
  Machine m;
  CHECK(m.result(98, {kLock, kLockPi}, 0) == 0);
  CHECK(m.call(1, 98, {kLock, kLockPi}).kind == Reply::Kind::kParked);
  m.kernel->end_thread(0);
  CHECK(word(m, kLock) == ((kTid + 1) | kWaiters | kDied));
  CHECK_FALSE(m.kernel->is_parked(1));
  CHECK(m.result(98, {kLock, kUnlockPi}, 1) == 0);
  CHECK(word(m, kLock) == 0);
}

TEST_CASE("a thread's robust list: owners that died are marked, one waiter wakes") {
  Machine m;
  // A ring of two entries, each with its word 8 bytes behind it; a pending third that is not taken.
  const uint64_t one = kHead + 64, two = kHead + 96, pending = kHead + 128;
  m.store<uint64_t>(kHead, one);
  m.store<int64_t>(kHead + 8, 8);
  m.store<uint64_t>(kHead + 16, pending);
  m.store<uint64_t>(one, two);
  m.store<uint64_t>(two, kHead);
  m.store<uint32_t>(one + 8, kTid | kWaiters);
  m.store<uint32_t>(two + 8, kTid + 1);  // another's
  CHECK(m.result(99, {kHead, 23}) == -EINVAL);
  CHECK(m.result(99, {kHead, 24}) == 0);
  CHECK(m.result(100, {0, kBuffer, kBuffer + 8}) == 0);
  CHECK(m.load<uint64_t>(kBuffer) == kHead);
  CHECK(m.load<uint64_t>(kBuffer + 8) == 24);
  CHECK(m.call(1, 98, {one + 8, 0, kTid | kWaiters}).kind == Reply::Kind::kParked);
  CHECK(m.call(2, 98, {pending + 8, 0, 0}).kind == Reply::Kind::kParked);
  m.kernel->end_thread(0);
  CHECK(word(m, one + 8) == (kWaiters | kDied));
  CHECK(word(m, two + 8) == kTid + 1);
  CHECK_FALSE(m.kernel->is_parked(1));
  CHECK_FALSE(m.kernel->is_parked(2));
}

TEST_CASE("a robust list without end, or at a wrong address, does not hold a thread up") {
  Machine m;
  m.store<uint64_t>(kHead, kHead + 64);
  m.store<uint64_t>(kHead + 64, kHead + 64);
  m.store<uint32_t>(kHead + 64, 0);
  CHECK(m.result(99, {kHead, 24}, 0) == 0);
  CHECK(m.result(99, {0x10, 24}, 1) == 0);
  m.kernel->end_thread(0);
  m.kernel->end_thread(1);
  CHECK(m.kernel->alive() == 2);
}

TEST_CASE("processor clocks are the guest's own, never those of a process of the host") {
  Machine m;
  const auto clock = [](int64_t id, int64_t kind) { return static_cast<uint64_t>(~id * 8 | kind); };
  CHECK(m.result(113, {clock(0, 2), kBuffer}) == 0);
  CHECK(m.result(113, {clock(kFirstPid, 2), kBuffer}) == 0);
  CHECK(m.result(113, {clock(kFirstPid + 1, 6), kBuffer}) == 0);
  CHECK(m.result(113, {clock(1, 2), kBuffer}) == -EINVAL);
  CHECK(m.result(113, {clock(1, 6), kBuffer}) == -EINVAL);
  CHECK(m.result(113, {clock(0, 3), kBuffer}) == -EINVAL);  // of a descriptor
  CHECK(m.result(113, {12, kBuffer}) == -EINVAL);
  CHECK(m.result(113, {2, kBuffer}) == 0);
}

TEST_CASE("limits: what is set is told; descriptors end there") {
  Machine m;
  const auto set = [&](int64_t resource, uint64_t current, uint64_t most) {
    m.store<uint64_t>(kBuffer, current);
    m.store<uint64_t>(kBuffer + 8, most);
    return m.result(164, {static_cast<uint64_t>(resource), kBuffer});
  };
  const uint64_t all = ~uint64_t{0};
  CHECK(set(RLIMIT_NOFILE, 6, 10) == 0);
  CHECK(m.result(163, {RLIMIT_NOFILE, kBuffer}) == 0);
  CHECK(m.load<uint64_t>(kBuffer) == 6);
  CHECK(m.load<uint64_t>(kBuffer + 8) == 10);
  CHECK(set(RLIMIT_NOFILE, 6, 11) == -EPERM);
  CHECK(set(RLIMIT_NOFILE, 11, 10) == -EINVAL);
  CHECK(set(16, 1, 1) == -EINVAL);
  for (int fd = 3; fd < 6; ++fd) CHECK(m.result(23, {0}) == fd);
  CHECK(m.result(23, {0}) == -EMFILE);
  CHECK(m.result(24, {0, 6, 0}) == -EBADF);  // dup3
  CHECK(m.result(24, {9, 9, 0}) == -EINVAL);
  CHECK(m.result(24, {0, 2, 1}) == -EINVAL);
  CHECK(m.result(25, {0, 0, 6}) == -EINVAL);  // F_DUPFD
  CHECK(set(RLIMIT_NOFILE, 7, 10) == 0);
  CHECK(m.result(23, {0}) == 6);
  CHECK(set(RLIMIT_AS, all, all) == 0);
  CHECK(m.result(261, {0, RLIMIT_NOFILE, 0, kBuffer}) == 0);
  CHECK(m.load<uint64_t>(kBuffer) == 7);
}

TEST_CASE("no file grows beyond RLIMIT_FSIZE") {
  Machine m;
  REQUIRE(m.open(m.folder / "big", 0102) == 3);
  m.store<uint64_t>(kBuffer, 10);
  m.store<uint64_t>(kBuffer + 8, ~uint64_t{0});
  CHECK(m.result(164, {RLIMIT_FSIZE, kBuffer}) == 0);
  CHECK(m.result(64, {3, kBuffer, 16}) == 10);
  CHECK(m.result(64, {3, kBuffer, 16}) == -EFBIG);
  CHECK(m.kernel->thread(0).pending.set() == uint64_t{1} << (SIGXFSZ - 1));
  CHECK(m.result(68, {3, kBuffer, 16, 8}) == 2);
  CHECK(m.result(68, {3, kBuffer, 16, 10}) == -EFBIG);
  CHECK(m.result(46, {3, 11}) == -EFBIG);
  CHECK(m.result(46, {3, 10}) == 0);
  CHECK(m.result(47, {3, 0, 5, 10}) == -EFBIG);
  m.put(kBuffer, (m.folder / "big").string());
  CHECK(m.result(45, {kBuffer, 11}) == -EFBIG);
  CHECK(fs::file_size(m.folder / "big") == 10);
}

TEST_CASE("a blocked timer's signal comes once and says how often it would have come") {
  Machine m(MemoryModel::kShared, 1);  // nobody else takes the signal
  m.store<uint64_t>(kBuffer, uint64_t{1} << (SIGUSR1 - 1));
  CHECK(m.result(135, {0, kBuffer, 0, 8}) == 0);  // blocks it
  m.store<uint64_t>(kBuffer, 77);                 // sigevent: value, signal
  m.store<int32_t>(kBuffer + 8, SIGUSR1);
  m.store<int32_t>(kBuffer + 12, 0);
  CHECK(m.result(107, {1, kBuffer, kBuffer + 64}) == 0);
  const auto id = static_cast<uint64_t>(m.load<int32_t>(kBuffer + 64));
  const uint64_t every[4] = {0, 1'000'000, 0, 1'000'000};
  m.store(kBuffer, every);
  CHECK(m.result(110, {id, 0, kBuffer, 0}) == 0);
  const auto now = Clock::now();
  m.kernel->expire(now + std::chrono::seconds(1));
  m.kernel->expire(now + std::chrono::seconds(2));
  m.store<uint64_t>(kBuffer, uint64_t{1} << (SIGUSR1 - 1));
  CHECK(m.result(137, {kBuffer, kBuffer + 128, 0, 8}) == SIGUSR1);
  CHECK(m.load<int32_t>(kBuffer + 128 + 8) == -2);  // SI_TIMER
  CHECK(m.load<int32_t>(kBuffer + 128 + 16) == static_cast<int32_t>(id));
  CHECK(m.load<int32_t>(kBuffer + 128 + 20) > 1900);
  CHECK(m.load<uint64_t>(kBuffer + 128 + 24) == 77);
  CHECK(m.result(109, {id}) == m.load<int32_t>(kBuffer + 128 + 20));
  CHECK(m.result(111, {id}) == 0);
  CHECK(m.result(111, {id}) == -EINVAL);
}

}  // namespace
}  // namespace gpusim::host
