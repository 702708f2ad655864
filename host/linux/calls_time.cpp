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
          .timeout_result = 0,
          .remaining_at = 0,
          .restartable = false};
}

Reply sleep_until(Kernel& kernel, const Call& call, Clock::time_point deadline,
                  uint64_t remaining_at) {
  Waiter waiter = waiter_for(call);
  waiter.deadline = deadline;
  waiter.remaining_at = remaining_at;
  return kernel.park(waiter);
}

Reply sleep_call(Kernel& kernel, Call& call, uint64_t request_address, bool absolute,
                 clockid_t clock, uint64_t remaining_at) {
  GuestTimespec request;
  if (!call.memory.load(request_address, &request)) return Reply::error(EFAULT);
  if (!is_valid(request)) return Reply::error(EINVAL);
  if (!absolute) return sleep_until(kernel, call, Clock::now() + duration_of(request), remaining_at);
  return sleep_until(kernel, call, deadline_on(clock, request), 0);
}

constexpr int kFutexWait = 0, kFutexWake = 1, kFutexRequeue = 3, kFutexCmpRequeue = 4,
              kFutexWakeOp = 5, kFutexWaitBitset = 9, kFutexWakeBitset = 10;
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
  waiter.restartable = !waiter.deadline;
  return kernel.park(waiter);
}

int64_t futex_wake(Kernel& kernel, Call& call, uint64_t address, uint64_t count, uint32_t bitset) {
  const auto woken = kernel.waits().wake(call.process->number, address, count, bitset);
  for (const Waiter& w : woken) kernel.resume(w.core, w.resume_uop, 0);
  return static_cast<int64_t>(woken.size());
}

// FUTEX_WAKE_OP: changes a second futex, wakes waiters of the first, and of the second if what it
// held before passes a test; linux/futex.h.
Reply futex_wake_op(Kernel& kernel, Call& call) {
  const uint64_t second = call.args[4];
  const auto code = static_cast<uint32_t>(call.args[5]);
  uint32_t old;
  if ((second & 3) || !call.memory.load(second, &old)) return Reply::error(EFAULT);
  const auto sign_extend12 = [](uint32_t x) { return static_cast<int32_t>(x << 20) >> 20; };
  int32_t operand = sign_extend12(code >> 12);
  const int32_t compared = sign_extend12(code);
  if (code >> 31) operand = static_cast<int32_t>(uint32_t{1} << (operand & 31));
  const auto bits = static_cast<uint32_t>(operand);
  uint32_t now;
  switch ((code >> 28) & 7) {
    case 0:
      now = bits;
      break;
    case 1:
      now = old + bits;
      break;
    case 2:
      now = old | bits;
      break;
    case 3:
      now = old & ~bits;
      break;
    case 4:
      now = old ^ bits;
      break;
    default:
      return Reply::error(ENOSYS);
  }
  const auto value = static_cast<int32_t>(old);
  bool holds;
  switch ((code >> 24) & 15) {
    case 0:
      holds = value == compared;
      break;
    case 1:
      holds = value != compared;
      break;
    case 2:
      holds = value < compared;
      break;
    case 3:
      holds = value <= compared;
      break;
    case 4:
      holds = value > compared;
      break;
    case 5:
      holds = value >= compared;
      break;
    default:
      return Reply::error(ENOSYS);
  }
  if (!call.memory.store(second, now)) return Reply::error(EFAULT);
  int64_t woken = futex_wake(kernel, call, call.args[0], call.args[2] & INT32_MAX, ~uint32_t{0});
  if (holds)
    woken += futex_wake(kernel, call, second, call.args[3] & INT32_MAX, ~uint32_t{0});
  return Reply::result(woken);
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
      return Reply::result(futex_wake(kernel, call, call.args[0], count_of(call.int_arg(2)), ~uint32_t{0}));
    case kFutexWakeBitset:
      if (static_cast<uint32_t>(call.args[5]) == 0) return Reply::error(EINVAL);
      return Reply::result(
          futex_wake(kernel, call, call.args[0], count_of(call.int_arg(2)),
                     static_cast<uint32_t>(call.args[5])));
    case kFutexWakeOp:
      return futex_wake_op(kernel, call);
    case kFutexCmpRequeue: {
      uint32_t value;
      if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
      if (value != static_cast<uint32_t>(call.args[5])) return Reply::error(EAGAIN);
      [[fallthrough]];
    }
    case kFutexRequeue: {
      const int64_t woken = futex_wake(kernel, call, call.args[0], count_of(call.int_arg(2)), ~uint32_t{0});
      const uint64_t moved = kernel.waits().requeue(call.process->number, call.args[0],
                                                    call.args[4], count_of(call.int_arg(3)));
      return Reply::result(woken + static_cast<int64_t>(moved));
    }
    default:
      return Reply::error(ENOSYS);
  }
}

Reply sys_nanosleep(Kernel& kernel, Call& call) {
  return sleep_call(kernel, call, call.args[0], /*absolute=*/false, CLOCK_MONOTONIC,
                    call.args[1]);
}
Reply sys_clock_nanosleep(Kernel& kernel, Call& call) {
  const int64_t clock = call.int_arg(0);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
    return Reply::error(EINVAL);
  return sleep_call(kernel, call, call.args[2], (call.args[1] & 1) != 0,
                    static_cast<clockid_t>(clock), call.args[3]);
}

// Timers: only ITIMER_REAL, which rings SIGALRM.
namespace {
struct GuestItimerval {
  GuestTimeval interval, value;
};
GuestTimeval timeval_of(Clock::duration d) {
  const int64_t us =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(d).count());
  return {us / 1'000'000, us % 1'000'000};
}
Clock::duration duration_of(const GuestTimeval& t) {
  return std::chrono::seconds(std::min(t.seconds, kLongestSeconds)) +
         std::chrono::microseconds(t.microseconds);
}
bool store_timer(const Call& call, uint64_t address) {
  GuestItimerval timer{timeval_of(call.process->alarm_interval), {0, 0}};
  if (call.process->alarm) timer.value = timeval_of(*call.process->alarm - Clock::now());
  return call.memory.store(address, timer);
}
}  // namespace

Reply sys_getitimer(Kernel&, Call& call) {
  if (call.int_arg(0) != 0) return Reply::error(EINVAL);
  return store_timer(call, call.args[1]) ? Reply::result(0) : Reply::error(EFAULT);
}
Reply sys_setitimer(Kernel& kernel, Call& call) {
  if (call.int_arg(0) != 0) {
    kernel.note_once("timer", "of interval timers only ITIMER_REAL is provided (EINVAL)");
    return Reply::error(EINVAL);
  }
  GuestItimerval next{};
  if (call.args[1] != 0 && !call.memory.load(call.args[1], &next)) return Reply::error(EFAULT);
  for (const GuestTimeval& t : {next.interval, next.value})
    if (t.seconds < 0 || t.microseconds < 0 || t.microseconds >= 1'000'000)
      return Reply::error(EINVAL);
  if (call.args[2] != 0 && !store_timer(call, call.args[2])) return Reply::error(EFAULT);
  call.process->alarm_interval = duration_of(next.interval);
  call.process->alarm.reset();
  if (next.value.seconds != 0 || next.value.microseconds != 0)
    call.process->alarm = Clock::now() + duration_of(next.value);
  kernel.watch_alarm(call.core);
  return Reply::result(0);
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
