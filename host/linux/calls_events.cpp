// Files that are no files: event counters, timers, memory, epoll. Each is one of the host's, which
// never blocks.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/epoll_file.h"
#include "host/linux/guest_abi.h"
#include "host/linux/waiting.h"

namespace gpusim::host {
namespace {

// asm-generic, in the flags of all calls here.
constexpr uint64_t kNonblock = 04000, kCloseOnExec = 02000000;

Reply open_special(Call& call, FileRef file, uint64_t flags) {
  file->is_nonblocking = (flags & kNonblock) != 0;
  const int fd = call.process->files.add(std::move(file));
  if (fd < 0) return Reply::error(EMFILE);
  call.process->files.set_closes_on_exec(fd, (flags & kCloseOnExec) != 0);
  return Reply::result(fd);
}

FileRef timer_of(const Call& call, int* error) {
  FileRef file = call.process->files.share(call.int_arg(0));
  *error = !file ? EBADF : file->kind() != OpenFile::Kind::kTimer ? EINVAL : 0;
  return file;
}

struct GuestItimerspec {
  GuestTimespec interval, value;
};
GuestItimerspec guest_time(const itimerspec& t) {
  return {{t.it_interval.tv_sec, t.it_interval.tv_nsec}, {t.it_value.tv_sec, t.it_value.tv_nsec}};
}

// arch/arm64: not packed, unlike x86-64's.
struct GuestEpollEvent {
  uint32_t events, pad;
  uint64_t data;
};
static_assert(sizeof(GuestEpollEvent) == 16);

// epoll_pwait and epoll_pwait2, whose deadline was taken.
Reply wait_for_events(Kernel& kernel, Call& call) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  auto* epoll = dynamic_cast<EpollFile*>(file.get());
  constexpr uint64_t kSize = sizeof(GuestEpollEvent);
  constexpr int64_t kMostAtOnce = 4096;
  const int64_t most = call.int_arg(2);
  if (!file) return Reply::error(EBADF);
  if (!epoll || most <= 0) return Reply::error(EINVAL);
  // An event that is taken must reach the guest.
  const uint64_t wish = static_cast<uint64_t>(std::min(most, kMostAtOnce)) * kSize;
  const uint64_t room = call.memory.allowed_prefix(call.args[1], wish, kWrite) / kSize;
  if (room == 0) return Reply::error(EFAULT);
  kernel.output().flush();
  epoll->prepare_look(kernel.pending(call.core));
  const bool outside = epoll->changes_by_itself();
  std::vector<epoll_event> events(room);
  const int n = ::epoll_wait(epoll->host_fd(), events.data(), static_cast<int>(room), 0);
  if (n < 0 && errno != EINTR) return Reply::error(errno);
  if (n <= 0) return wait_or_time_out(kernel, call, outside);
  std::vector<GuestEpollEvent> guest;
  for (int i = 0; i < n; ++i) guest.push_back({events[i].events, 0, events[i].data.u64});
  call.memory.write(call.args[1], {reinterpret_cast<const uint8_t*>(guest.data()),
                                   guest.size() * kSize});
  return Reply::result(n);
}

}  // namespace

Reply sys_eventfd2(Kernel& kernel, Call& call) {
  const uint64_t flags = call.args[1];
  if (flags & ~(EFD_SEMAPHORE | kNonblock | kCloseOnExec)) return Reply::error(EINVAL);
  if (kernel.is_isolated()) return Reply::error(EPERM);
  const int host = ::eventfd(static_cast<unsigned>(call.args[0]),
                             static_cast<int>(flags & EFD_SEMAPHORE) | EFD_NONBLOCK | EFD_CLOEXEC);
  if (host < 0) return Reply::error(errno);
  return open_special(
      call, std::make_shared<OpenFile>(host, /*owned=*/true, OpenFile::Kind::kEventCounter), flags);
}

Reply sys_timerfd_create(Kernel& kernel, Call& call) {
  const int64_t clock = call.int_arg(0);
  const uint64_t flags = call.args[1];
  if (flags & ~(kNonblock | kCloseOnExec)) return Reply::error(EINVAL);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
    return Reply::error(EINVAL);
  if (kernel.is_isolated()) return Reply::error(EPERM);
  const int host = ::timerfd_create(static_cast<int>(clock), TFD_NONBLOCK | TFD_CLOEXEC);
  if (host < 0) return Reply::error(errno);
  return open_special(
      call, std::make_shared<OpenFile>(host, /*owned=*/true, OpenFile::Kind::kTimer), flags);
}

Reply sys_timerfd_settime(Kernel&, Call& call) {
  int error;
  const FileRef file = timer_of(call, &error);
  if (error != 0) return Reply::error(error);
  GuestItimerspec guest;
  if (!call.memory.load(call.args[2], &guest)) return Reply::error(EFAULT);
  const itimerspec time{{guest.interval.seconds, guest.interval.nanoseconds},
                        {guest.value.seconds, guest.value.nanoseconds}};
  itimerspec old{};
  if (::timerfd_settime(file->host_fd(), static_cast<int>(call.int_arg(1)), &time, &old) < 0)
    return Reply::error(errno);
  file->is_armed = guest.value.seconds != 0 || guest.value.nanoseconds != 0;
  if (call.args[3] != 0 && !call.memory.store(call.args[3], guest_time(old)))
    return Reply::error(EFAULT);
  return Reply::result(0);
}

Reply sys_timerfd_gettime(Kernel&, Call& call) {
  int error;
  const FileRef file = timer_of(call, &error);
  if (error != 0) return Reply::error(error);
  itimerspec time{};
  if (::timerfd_gettime(file->host_fd(), &time) < 0) return Reply::error(errno);
  return call.memory.store(call.args[1], guest_time(time)) ? Reply::result(0)
                                                           : Reply::error(EFAULT);
}

Reply sys_memfd_create(Kernel& kernel, Call& call) {
  constexpr size_t kMostName = 250;  // with its zero
  const std::optional<std::string> name = call.memory.string(call.args[0], kMostName);
  if (!name) {
    uint8_t first;
    return Reply::error(call.memory.load(call.args[0], &first) ? EINVAL : EFAULT);
  }
  const uint64_t flags = call.args[1];
  if (flags & ~uint64_t{MFD_CLOEXEC | MFD_ALLOW_SEALING}) return Reply::error(EINVAL);
  if (kernel.is_isolated()) return Reply::error(EPERM);
  const int host = ::memfd_create(name->c_str(), static_cast<unsigned>(flags) | MFD_CLOEXEC);
  if (host < 0) return Reply::error(errno);
  return open_special(
      call, std::make_shared<OpenFile>(host, /*owned=*/true, OpenFile::Kind::kMemory),
      flags & MFD_CLOEXEC ? kCloseOnExec : 0);
}

Reply sys_epoll_create1(Kernel& kernel, Call& call) {
  if (call.args[0] & ~kCloseOnExec) return Reply::error(EINVAL);
  if (kernel.is_isolated()) return Reply::error(EPERM);
  const int host = ::epoll_create1(EPOLL_CLOEXEC);
  if (host < 0) return Reply::error(errno);
  return open_special(call, std::make_shared<EpollFile>(host), call.args[0]);
}

Reply sys_epoll_ctl(Kernel&, Call& call) {
  const FileRef set = call.process->files.share(call.int_arg(0));
  const FileRef file = call.process->files.share(call.int_arg(2));
  GuestEpollEvent event{};
  if (call.int_arg(1) != EPOLL_CTL_DEL && !call.memory.load(call.args[3], &event))
    return Reply::error(EFAULT);
  if (!set || !file) return Reply::error(EBADF);
  auto* epoll = dynamic_cast<EpollFile*>(set.get());
  if (!epoll || set == file) return Reply::error(EINVAL);
  const int error = epoll->control(static_cast<int>(call.int_arg(1)), file, call.int_arg(2),
                                   event.events, event.data);
  return error != 0 ? Reply::error(error) : Reply::result(0);
}

Reply sys_epoll_pwait(Kernel& kernel, Call& call) {
  Thread& thread = kernel.thread(call.core);
  const int64_t milliseconds = call.int_arg(3);
  if (milliseconds >= 0 && !thread.retry_deadline)
    thread.retry_deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  if (!take_mask(thread, call, call.args[4])) return Reply::error(EFAULT);
  return wait_for_events(kernel, call);
}

Reply sys_epoll_pwait2(Kernel& kernel, Call& call) {
  Thread& thread = kernel.thread(call.core);
  if (const int error = take_timeout(thread, call, call.args[3])) return Reply::error(error);
  if (!take_mask(thread, call, call.args[4])) return Reply::error(EFAULT);
  return wait_for_events(kernel, call);
}

}  // namespace gpusim::host
