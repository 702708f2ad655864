// Clocks, sleeping and futexes.
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

constexpr int64_t kLongestSeconds = int64_t{1} << 32;  // far from overflow in nanoseconds

bool is_valid(const GuestTimespec& t) {
  return t.seconds >= 0 && t.nanoseconds >= 0 && t.nanoseconds < 1'000'000'000;
}
std::chrono::nanoseconds duration_of(const GuestTimespec& t) {
  return std::chrono::seconds(std::min(t.seconds, kLongestSeconds)) +
         std::chrono::nanoseconds(t.nanoseconds);
}
// The point on our clock when `clock` shows `t`.
Clock::time_point deadline_on(clockid_t clock, const GuestTimespec& t) {
  timespec now{};
  clock_gettime(clock, &now);
  return Clock::now() + (duration_of(t) - duration_of({now.tv_sec, now.tv_nsec}));
}

Waiter waiter_for(const Call& call) {
  return {.core = call.core,
          .resume_uop = call.resume_uop,
          .space = call.process->number,
          .address = 0,
          .bitset = ~uint32_t{0},
          .deadline = {},
          .timeout_result = 0};
}

Reply sleep_until(Kernel& kernel, const Call& call, Clock::time_point deadline) {
  Waiter waiter = waiter_for(call);
  waiter.deadline = deadline;
  kernel.waits().park(waiter);
  return {Reply::Kind::kParked, 0};
}

Reply sleep_call(Kernel& kernel, Call& call, uint64_t request_address, bool absolute,
                 clockid_t clock) {
  GuestTimespec request;
  if (!call.memory.load(request_address, &request)) return Reply::error(EFAULT);
  if (!is_valid(request)) return Reply::error(EINVAL);
  if (!absolute) return sleep_until(kernel, call, Clock::now() + duration_of(request));
  return sleep_until(kernel, call, deadline_on(clock, request));
}

constexpr int kFutexWait = 0, kFutexWake = 1, kFutexRequeue = 3, kFutexCmpRequeue = 4,
              kFutexWaitBitset = 9, kFutexWakeBitset = 10;
constexpr int64_t kFutexRealtime = 256, kFutexOperation = 0x7f;

Reply futex_wait(Kernel& kernel, Call& call, bool bitset, bool realtime) {
  uint32_t value;
  if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
  Waiter waiter = waiter_for(call);
  waiter.address = call.args[0];
  waiter.timeout_result = -ETIMEDOUT;
  if (bitset) waiter.bitset = static_cast<uint32_t>(call.args[5]);
  if (waiter.bitset == 0) return Reply::error(EINVAL);
  if (call.args[3] != 0) {
    GuestTimespec timeout;
    if (!call.memory.load(call.args[3], &timeout)) return Reply::error(EFAULT);
    if (!is_valid(timeout)) return Reply::error(EINVAL);
    // FUTEX_WAIT takes a duration, FUTEX_WAIT_BITSET a point in time.
    waiter.deadline = bitset ? deadline_on(realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout)
                             : Clock::now() + duration_of(timeout);
  }
  if (value != static_cast<uint32_t>(call.args[2])) return Reply::error(EAGAIN);
  kernel.waits().park(waiter);
  return {Reply::Kind::kParked, 0};
}

int64_t futex_wake(Kernel& kernel, Call& call, uint64_t count, uint32_t bitset) {
  const auto woken = kernel.waits().wake(call.process->number, call.args[0], count, bitset);
  for (const Waiter& w : woken) kernel.resume(w.core, w.resume_uop, 0);
  return static_cast<int64_t>(woken.size());
}

uint64_t count_of(int64_t argument) { return argument < 0 ? 0 : static_cast<uint64_t>(argument); }

}  // namespace

Reply sys_futex(Kernel& kernel, Call& call) {
  if (call.args[0] & 3) return Reply::error(EINVAL);
  const int64_t operation = call.int_arg(1);
  const bool realtime = (operation & kFutexRealtime) != 0;
  switch (operation & kFutexOperation) {
    case kFutexWait:
      return futex_wait(kernel, call, /*bitset=*/false, realtime);
    case kFutexWaitBitset:
      return futex_wait(kernel, call, /*bitset=*/true, realtime);
    case kFutexWake:
      return Reply::result(futex_wake(kernel, call, count_of(call.int_arg(2)), ~uint32_t{0}));
    case kFutexWakeBitset:
      if (static_cast<uint32_t>(call.args[5]) == 0) return Reply::error(EINVAL);
      return Reply::result(
          futex_wake(kernel, call, count_of(call.int_arg(2)), static_cast<uint32_t>(call.args[5])));
    case kFutexCmpRequeue: {
      uint32_t value;
      if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
      if (value != static_cast<uint32_t>(call.args[5])) return Reply::error(EAGAIN);
      [[fallthrough]];
    }
    case kFutexRequeue: {
      const int64_t woken = futex_wake(kernel, call, count_of(call.int_arg(2)), ~uint32_t{0});
      const uint64_t moved = kernel.waits().requeue(call.process->number, call.args[0],
                                                    call.args[4], count_of(call.int_arg(3)));
      return Reply::result(woken + static_cast<int64_t>(moved));
    }
    default:
      return Reply::error(ENOSYS);
  }
}

Reply sys_nanosleep(Kernel& kernel, Call& call) {
  return sleep_call(kernel, call, call.args[0], /*absolute=*/false, CLOCK_MONOTONIC);
}
Reply sys_clock_nanosleep(Kernel& kernel, Call& call) {
  const int64_t clock = call.int_arg(0);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
    return Reply::error(EINVAL);
  return sleep_call(kernel, call, call.args[2], (call.args[1] & 1) != 0,
                    static_cast<clockid_t>(clock));
}

// The host's clocks: simulated time is another matter, and does not stand behind them.
Reply sys_clock_gettime(Kernel&, Call& call) {
  timespec host;
  if (clock_gettime(static_cast<clockid_t>(call.int_arg(0)), &host) < 0)
    return Reply::error(EINVAL);
  return call.memory.store(call.args[1], GuestTimespec{host.tv_sec, host.tv_nsec})
             ? Reply::result(0)
             : Reply::error(EFAULT);
}
Reply sys_clock_getres(Kernel&, Call& call) {
  timespec host;
  if (clock_getres(static_cast<clockid_t>(call.int_arg(0)), &host) < 0) return Reply::error(EINVAL);
  if (call.args[1] == 0) return Reply::result(0);
  return call.memory.store(call.args[1], GuestTimespec{host.tv_sec, host.tv_nsec})
             ? Reply::result(0)
             : Reply::error(EFAULT);
}
Reply sys_gettimeofday(Kernel&, Call& call) {
  timeval host;
  gettimeofday(&host, nullptr);
  if (call.args[0] != 0 &&
      !call.memory.store(call.args[0], GuestTimeval{host.tv_sec, host.tv_usec}))
    return Reply::error(EFAULT);
  const int32_t zone[2] = {0, 0};
  if (call.args[1] != 0 && !call.memory.store(call.args[1], zone)) return Reply::error(EFAULT);
  return Reply::result(0);
}
Reply sys_times(Kernel&, Call& call) {
  struct tms host;
  const clock_t ticks = ::times(&host);
  const int64_t guest[4] = {host.tms_utime, host.tms_stime, host.tms_cutime, host.tms_cstime};
  if (call.args[0] != 0 && !call.memory.store(call.args[0], guest)) return Reply::error(EFAULT);
  return Reply::result(ticks);
}

}  // namespace gpusim::host
