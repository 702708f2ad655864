// Waiting for files: ppoll, pselect6.
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/waiting.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

struct GuestPoll {
  int32_t fd;
  int16_t events, revents;
};

// Fills in what is ready now; returns how many are. `outside` says whether some of them can become
// ready by other hands than the guest's.
int64_t look(Kernel& kernel, const Call& call, std::vector<GuestPoll>& polls, bool* outside) {
  const uint64_t signals = kernel.pending(call.core);
  int64_t ready = 0;
  *outside = false;
  for (GuestPoll& p : polls) {
    p.revents = 0;
    if (p.fd < 0) continue;
    const FileRef file = call.process->files.share(p.fd);
    if (!file) {
      p.revents = POLLNVAL;
    } else {
      file->prepare_look(signals);
      *outside |= file->changes_by_itself();
      pollfd host{file->host_fd(), p.events, 0};
      if (::poll(&host, 1, 0) > 0) p.revents = host.revents;
    }
    ready += p.revents != 0;
  }
  return ready;
}

}  // namespace

int take_timeout(Thread& thread, const Call& call, uint64_t address) {
  if (address == 0 || thread.retry_deadline) return 0;
  GuestTimespec t;
  if (!call.memory.load(address, &t)) return EFAULT;
  if (t.seconds < 0 || t.nanoseconds < 0 || t.nanoseconds >= 1'000'000'000) return EINVAL;
  thread.retry_deadline = Clock::now() +
                          std::chrono::seconds(std::min<int64_t>(t.seconds, int64_t{1} << 32)) +
                          std::chrono::nanoseconds(t.nanoseconds);
  return 0;
}

bool is_over(const Thread& thread) {
  return thread.retry_deadline && *thread.retry_deadline <= Clock::now();
}

bool take_mask(Thread& thread, const Call& call, uint64_t address) {
  if (address == 0 || thread.saved_mask) return true;
  uint64_t mask;
  if (!call.memory.load(address, &mask)) return false;
  thread.saved_mask = thread.mask;
  thread.mask = mask & ~kUnblockable;
  return true;
}

Reply wait_or_time_out(Kernel& kernel, const Call& call, bool from_outside) {
  if (is_over(kernel.thread(call.core))) return Reply::result(0);
  kernel.forget_ignored(call.core);
  if (kernel.deliverable(call.core) != 0) return Reply::error(EINTR);
  return kernel.park_for_retry(call, {.from_outside = from_outside});
}

Reply sys_ppoll(Kernel& kernel, Call& call) {
  if (call.args[1] > static_cast<uint64_t>(call.process->files.limit()))
    return Reply::error(EINVAL);
  std::vector<GuestPoll> polls(call.args[1]);
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(polls.data()),
                                 polls.size() * sizeof(GuestPoll)};
  if (!call.memory.read(call.args[0], bytes)) return Reply::error(EFAULT);
  Thread& thread = kernel.thread(call.core);
  if (const int error = take_timeout(thread, call, call.args[2])) return Reply::error(error);
  if (!take_mask(thread, call, call.args[3])) return Reply::error(EFAULT);
  kernel.output().flush();
  bool outside;
  const int64_t ready = look(kernel, call, polls, &outside);
  if (ready == 0 && !is_over(thread)) return wait_or_time_out(kernel, call, outside);
  return call.memory.write(call.args[0], bytes) ? Reply::result(ready) : Reply::error(EFAULT);
}

Reply sys_pselect6(Kernel& kernel, Call& call) {
  constexpr int64_t kMost = 1024;
  const int64_t count = call.int_arg(0);
  if (count < 0) return Reply::error(EINVAL);
  const auto n = static_cast<size_t>(std::min(count, kMost));
  static constexpr int16_t kEvents[3] = {POLLIN, POLLOUT, POLLPRI};
  static constexpr int16_t kFound[3] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};
  // Sets are whole longs of the guest.
  const size_t long_bits = 8 * call.word_bytes;
  const size_t set_bytes = (n + long_bits - 1) / long_bits * call.word_bytes;
  std::array<std::vector<uint64_t>, 3> sets;
  std::vector<GuestPoll> polls(n);
  for (size_t fd = 0; fd < n; ++fd) polls[fd] = {-1, 0, 0};
  for (size_t s = 0; s < 3; ++s) {
    sets[s].resize((n + 63) / 64);
    if (call.args[1 + s] == 0) continue;
    if (!call.memory.read(call.args[1 + s],
                          {reinterpret_cast<uint8_t*>(sets[s].data()), set_bytes}))
      return Reply::error(EFAULT);
    for (size_t fd = 0; fd < n; ++fd)
      if (sets[s][fd / 64] >> (fd % 64) & 1) {
        polls[fd].fd = static_cast<int32_t>(fd);
        polls[fd].events = static_cast<int16_t>(polls[fd].events | kEvents[s]);
      }
  }
  Thread& thread = kernel.thread(call.core);
  if (const int error = take_timeout(thread, call, call.args[4])) return Reply::error(error);
  if (call.args[5] != 0) {
    std::array<int64_t, 2> mask_argument;  // where it is, and its size
    if (!load_longs(call, call.args[5], &mask_argument)) return Reply::error(EFAULT);
    if (!take_mask(thread, call, kernel.in_register(mask_argument[0])))
      return Reply::error(EFAULT);
  }
  kernel.output().flush();
  bool outside;
  const int64_t ready = look(kernel, call, polls, &outside);
  for (const GuestPoll& p : polls)
    if (p.revents & POLLNVAL) return Reply::error(EBADF);
  if (ready == 0 && !is_over(thread)) return wait_or_time_out(kernel, call, outside);
  int64_t bits = 0;
  for (size_t s = 0; s < 3; ++s) {
    if (call.args[1 + s] == 0) continue;
    for (size_t fd = 0; fd < n; ++fd) {
      const uint64_t bit = uint64_t{1} << (fd % 64);
      if (!(sets[s][fd / 64] & bit)) continue;
      if (polls[fd].revents & kFound[s])
        ++bits;
      else
        sets[s][fd / 64] &= ~bit;
    }
    if (!call.memory.write(call.args[1 + s],
                           {reinterpret_cast<const uint8_t*>(sets[s].data()), set_bytes}))
      return Reply::error(EFAULT);
  }
  return Reply::result(bits);
}

}  // namespace gpusim::host
