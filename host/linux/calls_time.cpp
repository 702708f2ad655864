// Clocks and sleeping.
#include <sys/time.h>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/times.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kTimerAbsolute = 1;

Reply sleep_call(Kernel& kernel, Call& call, const GuestClock& clock, uint64_t request_address,
                 bool absolute, uint64_t remaining_at) {
  GuestTimespec request;
  if (!call.memory.load(request_address, &request)) return Reply::error(EFAULT);
  if (!is_valid(request)) return Reply::error(EINVAL);
  Waiter waiter = waiter_for(call);
  if (!absolute) waiter.remaining_at = remaining_at;
  if (clock.kind == GuestClock::Kind::kCpu)
    waiter.cpu_deadline =
        duration_of(request) + (absolute ? std::chrono::nanoseconds{} : kernel.cpu_time().total());
  else
    waiter.deadline = absolute ? deadline_on(clock.host, request)
                               : Clock::now() + duration_of(request);
  return kernel.park(waiter);
}

// A dynamic clock: what clock_getcpuclockid and pthread_getcpuclockid make of a process or thread.
constexpr int64_t kCpuClockThread = 4, kCpuClockKind = 3;

}  // namespace

Clock::time_point deadline_on(clockid_t clock, const GuestTimespec& t) {
  timespec now{};
  clock_gettime(clock, &now);
  return Clock::now() + (duration_of(t) - duration_of(GuestTimespec{now.tv_sec, now.tv_nsec}));
}

Waiter waiter_for(const Call& call) {
  Waiter waiter;
  waiter.core = call.core;
  waiter.resume_uop = call.resume_uop;
  waiter.space = call.process->number;
  return waiter;
}

std::optional<GuestClock> find_clock(Kernel& kernel, const Call& call, int64_t number) {
  const GuestClock cpu{.kind = GuestClock::Kind::kCpu, .can_wait = true};
  if (number < 0) {
    // ~id << 3 | thread << 2 | which of its clocks. A host process is none of the guest's business.
    const int64_t id = ~(number >> 3);
    if ((number & kCpuClockKind) == kCpuClockKind) return std::nullopt;  // of a descriptor
    if (number & kCpuClockThread) {
      const auto core = id == 0 ? std::optional(call.core) : kernel.core_of_thread(id);
      if (!core || (kernel.is_private() && *core != call.core)) return std::nullopt;
      return cpu;
    }
    return id == 0 || id == call.process->pid ? std::optional(cpu) : std::nullopt;
  }
  switch (number) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
      return GuestClock{.host = static_cast<clockid_t>(number), .can_wait = true};
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_REALTIME_ALARM:  // without a clock that wakes a machine, as most have it
    case CLOCK_BOOTTIME_ALARM:
      return GuestClock{.host = static_cast<clockid_t>(number)};
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return cpu;
    default:
      return std::nullopt;
  }
}

Reply sys_nanosleep(Kernel& kernel, Call& call) {
  return sleep_call(kernel, call, {.host = CLOCK_MONOTONIC}, call.args[0], /*absolute=*/false,
                    call.args[1]);
}
Reply sys_clock_nanosleep(Kernel& kernel, Call& call) {
  const auto clock = find_clock(kernel, call, call.int_arg(0));
  if (!clock) return Reply::error(EINVAL);
  // A thread cannot wait for its own processor time to pass.
  if (!clock->can_wait || call.int_arg(0) == CLOCK_THREAD_CPUTIME_ID)
    return Reply::error(EOPNOTSUPP);
  return sleep_call(kernel, call, *clock, call.args[2], (call.args[1] & kTimerAbsolute) != 0,
                    call.args[3]);
}

// The host's clocks: simulated time is another matter, and does not stand behind them.
Reply sys_clock_gettime(Kernel& kernel, Call& call) {
  const auto clock = find_clock(kernel, call, call.int_arg(0));
  if (!clock) return Reply::error(EINVAL);
  GuestTimespec now{};
  if (clock->kind == GuestClock::Kind::kCpu) {
    now = timespec_of(kernel.cpu_time().total());
  } else {
    timespec host{};
    if (clock_gettime(clock->host, &host) < 0) return Reply::error(EINVAL);
    now = {host.tv_sec, host.tv_nsec};
  }
  return call.memory.store(call.args[1], now) ? Reply::result(0) : Reply::error(EFAULT);
}
Reply sys_clock_getres(Kernel& kernel, Call& call) {
  const auto clock = find_clock(kernel, call, call.int_arg(0));
  timespec host{.tv_sec = 0, .tv_nsec = 1};  // of a processor's clock
  if (!clock ||
      (clock->kind == GuestClock::Kind::kHost && clock_getres(clock->host, &host) < 0))
    return Reply::error(EINVAL);
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
Reply sys_times(Kernel& kernel, Call& call) {
  constexpr int64_t kNanosecondsPerTick = 10'000'000;  // 100 ticks per second
  const CpuTime used = kernel.cpu_time();
  const CpuTime children = kernel.family() ? kernel.family()->usage_of_children().cpu : CpuTime{};
  const std::array<int64_t, 4> guest{
      used.user.count() / kNanosecondsPerTick, used.system.count() / kNanosecondsPerTick,
      children.user.count() / kNanosecondsPerTick, children.system.count() / kNanosecondsPerTick};
  if (call.args[0] != 0 && !store_longs(call, call.args[0], guest)) return Reply::error(EFAULT);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Reply::result(now.tv_sec * 100 + now.tv_nsec / kNanosecondsPerTick);
}

}  // namespace gpusim::host
