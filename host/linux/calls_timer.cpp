// Timers: setitimer and timer_create with their kin.
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/times.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

using std::chrono::nanoseconds;

// struct itimerval: the interval, then the value, each in seconds and microseconds.
using GuestItimerval = std::array<int64_t, 4>;
struct GuestItimerspec {
  GuestTimespec interval, value;
};
// asm-generic/siginfo.h
template <class Word>
struct GuestSigevent {
  Word value;
  int32_t signal, notify, tid;
  uint8_t rest[52 - sizeof(Word)];
};
static_assert(sizeof(GuestSigevent<uint32_t>) == 64 && sizeof(GuestSigevent<uint64_t>) == 64);
constexpr int32_t kSigevSignal = 0, kSigevNone = 1, kSigevThread = 2, kSigevThreadId = 4;

Timer* interval_timer(const Call& call) {
  const int64_t which = call.int_arg(0);
  return which >= 0 && which < 3 ? &call.process->timers.interval[which] : nullptr;
}

bool store_timer(Kernel& kernel, const Call& call, const Timer& timer, uint64_t address) {
  // What is left of an armed timer is never 0: that would mean that it is not armed.
  nanoseconds left = timer.left(kernel.timer_now(timer.base));
  if (left.count() > 0) left = std::max(left, nanoseconds{1000});
  const GuestTimeval interval = timeval_of(timer.interval), value = timeval_of(left);
  return store_longs(call, address,
                     GuestItimerval{interval.seconds, interval.microseconds, value.seconds,
                                    value.microseconds});
}

Timer* find_timer(const Call& call) {
  auto& made = call.process->timers.made;
  const auto it = made.find(static_cast<int32_t>(call.args[0]));
  return it == made.end() ? nullptr : &it->second;
}

GuestItimerspec setting_of(Kernel& kernel, const Timer& timer) {
  return {timespec_of(timer.interval), timespec_of(timer.left(kernel.timer_now(timer.base)))};
}

// Whom a new timer tells, by sigevent(7). 0 or -errno.
template <class Word>
int64_t set_notification(Kernel& kernel, const Call& call, int32_t id, Timer* timer) {
  timer->signal = SIGALRM;
  timer->value = static_cast<uint64_t>(id);
  if (call.args[1] == 0) return 0;
  GuestSigevent<Word> event;
  if (!call.memory.load(call.args[1], &event)) return -EFAULT;
  timer->signal = event.signal;
  timer->value = event.value;
  switch (event.notify) {
    case kSigevNone:
      timer->notify = Timer::Notify::kNobody;
      return 0;
    case kSigevSignal:
    case kSigevThread:  // C libraries make it from kSigevThreadId
      break;
    case kSigevThreadId: {
      const auto core = kernel.core_of_thread(event.tid);
      if (!core || (kernel.is_private() && *core != call.core)) return -EINVAL;
      timer->notify = Timer::Notify::kThread;
      timer->tid = event.tid;
      break;
    }
    default:
      return -EINVAL;
  }
  return event.signal >= 1 && event.signal <= kSignalCount ? 0 : -EINVAL;
}

}  // namespace

Reply sys_getitimer(Kernel& kernel, Call& call) {
  const Timer* timer = interval_timer(call);
  if (!timer) return Reply::error(EINVAL);
  return store_timer(kernel, call, *timer, call.args[1]) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_setitimer(Kernel& kernel, Call& call) {
  Timer* timer = interval_timer(call);
  GuestItimerval next{};
  if (!timer) return Reply::error(EINVAL);
  if (call.args[1] != 0 && !load_longs(call, call.args[1], &next)) return Reply::error(EFAULT);
  const GuestTimeval interval{next[0], next[1]}, value{next[2], next[3]};
  if (!is_valid(interval) || !is_valid(value)) return Reply::error(EINVAL);
  if (call.args[2] != 0 && !store_timer(kernel, call, *timer, call.args[2]))
    return Reply::error(EFAULT);
  timer->interval = duration_of(interval);
  timer->due.reset();
  if (value.seconds != 0 || value.microseconds != 0)
    timer->due = kernel.timer_now(timer->base) + duration_of(value);
  kernel.watch_timers(call.core);
  return Reply::result(0);
}

Reply sys_timer_create(Kernel& kernel, Call& call) {
  const auto clock = find_clock(kernel, call, call.int_arg(0));
  if (!clock) return Reply::error(EINVAL);
  if (!clock->can_wait) return Reply::error(EOPNOTSUPP);
  Timers& timers = call.process->timers;
  if (timers.made.size() >= call.process->limits[Limits::kPendingSignals].current)
    return Reply::error(EAGAIN);
  Timer timer;
  timer.clock = static_cast<int32_t>(call.int_arg(0));
  timer.base =
      clock->kind == GuestClock::Kind::kCpu ? Timer::Base::kCpu : Timer::Base::kSteady;
  while (timers.made.contains(timers.next_id)) timers.next_id = (timers.next_id + 1) & INT32_MAX;
  const int32_t id = timers.next_id;
  const int64_t error = call.word_bytes == 4
                            ? set_notification<uint32_t>(kernel, call, id, &timer)
                            : set_notification<uint64_t>(kernel, call, id, &timer);
  if (error != 0) return Reply::result(error);
  if (!call.memory.store(call.args[2], id)) return Reply::error(EFAULT);
  timers.made[id] = timer;
  timers.next_id = (id + 1) & INT32_MAX;
  return Reply::result(0);
}

Reply sys_timer_settime(Kernel& kernel, Call& call) {
  constexpr uint64_t kAbsolute = 1;
  GuestItimerspec next;
  if (call.args[2] == 0) return Reply::error(EINVAL);
  if (!call.memory.load(call.args[2], &next)) return Reply::error(EFAULT);
  if (!is_valid(next.interval) || !is_valid(next.value)) return Reply::error(EINVAL);
  Timer* timer = find_timer(call);
  if (!timer) return Reply::error(EINVAL);
  if (call.args[3] != 0 && !call.memory.store(call.args[3], setting_of(kernel, *timer)))
    return Reply::error(EFAULT);
  timer->interval = duration_of(next.interval);
  timer->overruns = timer->last_overruns = 0;
  timer->due.reset();
  if (next.value.seconds == 0 && next.value.nanoseconds == 0) return Reply::result(0);
  const nanoseconds value = duration_of(next.value);
  if ((call.args[1] & kAbsolute) == 0)
    timer->due = kernel.timer_now(timer->base) + value;
  else if (timer->base == Timer::Base::kCpu)
    timer->due = value;
  else
    timer->due = deadline_on(timer->clock, next.value).time_since_epoch();
  kernel.watch_timers(call.core);
  return Reply::result(0);
}

Reply sys_timer_gettime(Kernel& kernel, Call& call) {
  Timer* timer = find_timer(call);
  if (!timer) return Reply::error(EINVAL);
  // Nobody is told: so it has not been looked at since.
  if (timer->notify == Timer::Notify::kNobody) timer->advance(kernel.timer_now(timer->base));
  return call.memory.store(call.args[1], setting_of(kernel, *timer)) ? Reply::result(0)
                                                                     : Reply::error(EFAULT);
}
Reply sys_timer_getoverrun(Kernel&, Call& call) {
  const Timer* timer = find_timer(call);
  return timer ? Reply::result(timer->last_overruns) : Reply::error(EINVAL);
}
Reply sys_timer_delete(Kernel&, Call& call) {
  return call.process->timers.made.erase(static_cast<int32_t>(call.args[0])) != 0
             ? Reply::result(0)
             : Reply::error(EINVAL);
}

}  // namespace gpusim::host
