// When timers of the kernel model ring, and processor time.
#include <sys/resource.h>

#include <algorithm>

#include "host/linux/kernel.h"

namespace gpusim::host {
namespace {

using std::chrono::nanoseconds;

Usage host_usage() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return usage_of(used);
}

constexpr int32_t kSiKernel = 0x80;

}  // namespace

Timers::Timers() {
  static constexpr Timer::Base kBases[] = {Timer::Base::kSteady, Timer::Base::kUserCpu,
                                           Timer::Base::kCpu};
  static constexpr int32_t kSignals[] = {SIGALRM, SIGVTALRM, SIGPROF};
  for (size_t i = 0; i < interval.size(); ++i) {
    interval[i].base = kBases[i];
    interval[i].signal = kSignals[i];
  }
}

void Kernel::set_cpu_time(const CpuTime& used) {
  const CpuTime host = host_usage().cpu;
  cpu_time_begin_ = {host.user - used.user, host.system - used.system};
}

Usage Kernel::usage() const {
  Usage usage = host_usage();
  usage.cpu.user -= cpu_time_begin_.user;
  usage.cpu.system -= cpu_time_begin_.system;
  return usage;
}

CpuTime Kernel::cpu_time() const { return usage().cpu; }

nanoseconds Kernel::timer_now(Timer::Base base) const {
  switch (base) {
    case Timer::Base::kSteady:
      return Clock::now().time_since_epoch();
    case Timer::Base::kCpu:
      return cpu_time().total();
    case Timer::Base::kUserCpu:
      return cpu_time().user;
  }
  return {};
}

void Kernel::watch_timers(uint32_t core) {
  if (std::find(timed_.begin(), timed_.end(), core) == timed_.end()) timed_.push_back(core);
}

bool Kernel::has_cpu_timers() const {
  if (waits_.has_cpu_deadlines()) return true;
  bool found = false;
  for (const uint32_t core : timed_)
    if (const auto& process = processes_[is_private() ? core : 0]) {
      found |= process->limits[Limits::kCpu].current != Limits::kInfinite;
      process->timers.each([&](const Timer& t, int32_t) {
        found |= t.due.has_value() && t.base != Timer::Base::kSteady;
      });
    }
  return found;
}

// A timer's signal that still waits counts what comes meanwhile; else a new one does.
void Kernel::ring(uint32_t core, Timer& timer, int32_t id, uint64_t times) {
  Process& process = process_of(core);
  if (id == Timers::kNoId)
    return post(process, core, {.number = timer.signal, .code = kSiKernel});
  if (timer.notify == Timer::Notify::kNobody) return;
  const auto add = [&](uint64_t more) {
    timer.overruns =
        static_cast<uint32_t>(std::min<uint64_t>(timer.overruns + more, INT32_MAX));
  };
  SignalInfo info{
      .number = timer.signal, .code = kSiTimer, .pid = id, .value = timer.value};
  if (timer.notify == Timer::Notify::kThread) {
    const auto target = core_of_thread(timer.tid);
    if (!target) return;
    if (threads_[*target].pending.has_timer(id)) return add(times);
    timer.overruns = 0;
    add(times - 1);
    return post(*target, info);
  }
  bool waits = process.pending.has_timer(id);
  if (!is_private())
    for (uint32_t c = 0; c < threads_.size(); ++c) {
      const Thread* const t = threads_.find(c);
      waits |= t && is_alive(c) && t->pending.has_timer(id);
    }
  else
    waits |= threads_[core].pending.has_timer(id);
  if (waits) return add(times);
  timer.overruns = 0;
  add(times - 1);
  post(process, core, info);
}

// RLIMIT_CPU: a signal each second beyond the limit, the last one at the hard limit.
void Kernel::check_cpu_limit(uint32_t core, nanoseconds used) {
  Process& process = process_of(core);
  const GuestRlimit& limit = process.limits[Limits::kCpu];
  const auto seconds = static_cast<uint64_t>(used / std::chrono::seconds(1));
  if (seconds >= limit.most) {
    return kill(is_private() ? core : threads_.first_alive().value_or(core), SIGKILL);
  }
  if (seconds < std::max(limit.current, process.next_cpu_signal)) return;
  process.next_cpu_signal = seconds + 1;
  post(process, core, {.number = SIGXCPU, .code = kSiKernel});
}

void Kernel::ring_timers(Clock::time_point now) {
  if (waits_.has_cpu_deadlines())
    for (const Waiter& w : waits_.expire_on_cpu_clock(cpu_time().total()))
      resume(w.core, w.resume_uop, 0);
  if (timed_.empty()) return;
  const CpuTime used = cpu_time();
  const auto now_on = [&](Timer::Base base) {
    return base == Timer::Base::kSteady ? nanoseconds(now.time_since_epoch())
           : base == Timer::Base::kCpu  ? used.total()
                                        : used.user;
  };
  for (const uint32_t core : std::vector(timed_)) {
    if (is_private() && !is_alive(core)) continue;
    process_of(core).timers.each([&](Timer& timer, int32_t id) {
      if (const uint64_t times = timer.advance(now_on(timer.base))) ring(core, timer, id, times);
    });
    if (process_of(core).limits[Limits::kCpu].current != Limits::kInfinite)
      check_cpu_limit(core, used.total());
  }
  std::erase_if(timed_, [&](uint32_t core) {
    Process& process = process_of(core);
    return (is_private() && !is_alive(core)) ||
           (!process.timers.any_armed() &&
            process.limits[Limits::kCpu].current == Limits::kInfinite);
  });
}

std::optional<SignalInfo> Kernel::take_signal(uint32_t core, uint64_t allowed) {
  Process& process = process_of(core);
  std::optional<SignalInfo> info = threads_[core].pending.take(allowed);
  if (!info) info = process.pending.take(allowed);
  if (!info || info->code != kSiTimer) return info;
  const auto timer = process.timers.made.find(info->pid);
  if (timer == process.timers.made.end()) return info;
  Timer& t = timer->second;
  t.last_overruns = std::exchange(t.overruns, 0);
  info->uid = t.last_overruns;  // si_overrun is in its place
  return info;
}

}  // namespace gpusim::host
