#include "host/linux/signal_file.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "host/linux/calls.h"

namespace gpusim::host {
namespace {

// struct signalfd_siginfo of linux/signalfd.h.
struct GuestSignalInfo {
  uint32_t number;
  int32_t error, code;
  uint32_t pid, uid;
  int32_t fd;
  uint32_t timer, band, overrun, trap;
  int32_t status, value;
  uint64_t pointer, user_time, system_time, address;
  uint16_t address_low_bits, pad;
  int32_t system_call;
  uint64_t call_address;
  uint32_t architecture;
  uint8_t rest[28];
};
static_assert(sizeof(GuestSignalInfo) == 128);

GuestSignalInfo guest_info(const SignalInfo& info) {
  GuestSignalInfo guest{};
  guest.number = static_cast<uint32_t>(info.number);
  guest.code = info.code;
  guest.value = static_cast<int32_t>(info.value);
  guest.pointer = info.value;
  if (info.is_fault) {
    guest.address = info.address;
  } else if (info.code == kSiTimer) {  // SignalInfo has these in the sender's place
    guest.timer = static_cast<uint32_t>(info.pid);
    guest.overrun = info.uid;
  } else {
    guest.pid = static_cast<uint32_t>(info.pid);
    guest.uid = info.uid;
  }
  return guest;
}

}  // namespace

void SignalFile::prepare_look(uint64_t pending_signals) {
  const bool is_readable = (pending_signals & set) != 0;
  if (is_readable == is_readable_) return;
  is_readable_ = is_readable;
  eventfd_t count;
  is_readable ? ::eventfd_write(host_fd(), 1) : ::eventfd_read(host_fd(), &count);
}

Reply sys_signalfd4(Kernel& kernel, Call& call) {
  constexpr uint64_t kSetSize = 8, kNonblock = 04000, kCloseOnExec = 02000000;
  const int64_t fd = call.int_arg(0);
  const uint64_t flags = call.args[3];
  uint64_t set;
  if (call.args[2] != kSetSize) return Reply::error(EINVAL);
  if (!call.memory.load(call.args[1], &set)) return Reply::error(EFAULT);
  if (flags & ~(kNonblock | kCloseOnExec)) return Reply::error(EINVAL);
  set &= ~kUnblockable;
  FileTable& files = call.process->files;
  if (fd != -1) {
    const FileRef known = files.share(fd);
    if (!known) return Reply::error(EBADF);
    auto* file = dynamic_cast<SignalFile*>(known.get());
    if (!file) return Reply::error(EINVAL);
    file->set = set;
    return Reply::result(fd);
  }
  if (kernel.is_isolated()) return Reply::error(EPERM);
  const int host = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (host < 0) return Reply::error(errno);
  const auto file = std::make_shared<SignalFile>(host, set);
  file->is_nonblocking = (flags & kNonblock) != 0;
  const int made = files.add(file);
  if (made < 0) return Reply::error(EMFILE);
  files.set_closes_on_exec(made, (flags & kCloseOnExec) != 0);
  return Reply::result(made);
}

Reply read_signals(Kernel& kernel, Call& call, const SignalFile& file,
                   std::span<const GuestIovec> vectors) {
  constexpr uint64_t kSize = sizeof(GuestSignalInfo);
  int64_t done = 0;
  bool has_room = false;
  for (const GuestIovec& v : vectors) {
    for (uint64_t at = 0; v.size - at >= kSize; at += kSize) {
      has_room = true;
      // A signal that is taken must reach the guest.
      if (!call.memory.allows(v.base + at, kSize, kWrite))
        return done != 0 ? Reply::result(done) : Reply::error(EFAULT);
      const std::optional<SignalInfo> info = kernel.take_signal(call.core, file.set);
      if (!info && done != 0) return Reply::result(done);
      if (!info && file.is_nonblocking) return Reply::error(EAGAIN);
      if (!info) return kernel.park_for_retry(call, {.restartable = true});
      call.memory.store(v.base + at, guest_info(*info));
      done += kSize;
    }
  }
  return has_room ? Reply::result(done) : Reply::error(EINVAL);
}

}  // namespace gpusim::host
