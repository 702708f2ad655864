// Identity, limits and use of resources of a process.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/times.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

int64_t own_pid(const Call& call) { return call.process->pid; }

// linux/sysinfo.h
template <class Word>
struct GuestSysinfo {
  Word uptime, loads[3], total_ram, free_ram, shared_ram, buffer_ram, total_swap, free_swap;
  uint16_t processes, pad;
  alignas(Word) Word total_high, free_high;
  uint32_t unit;
  uint8_t rest[12 - sizeof(Word)];
};
static_assert(sizeof(GuestSysinfo<uint32_t>) == 64 && sizeof(GuestSysinfo<uint64_t>) == 112);

template <class Word>
bool store_sysinfo(const Call& call, uint64_t memory_bytes) {
  GuestSysinfo<Word> info{};
  // Bytes, or pages where a word cannot count the bytes.
  info.unit = memory_bytes > Word(-1) ? 4096 : 1;
  info.total_ram = static_cast<Word>(memory_bytes / info.unit);
  info.free_ram = info.total_ram / 2;
  info.processes = 1;
  return call.memory.store(call.args[0], info);
}

}  // namespace

Reply sys_enosys(Kernel&, Call&) { return Reply::error(ENOSYS); }

Reply sys_getpid(Kernel&, Call& call) { return Reply::result(own_pid(call)); }
Reply sys_getuid(Kernel&, Call&) { return Reply::result(getuid()); }
Reply sys_geteuid(Kernel&, Call&) { return Reply::result(geteuid()); }
Reply sys_getgid(Kernel&, Call&) { return Reply::result(getgid()); }
Reply sys_getegid(Kernel&, Call&) { return Reply::result(getegid()); }
Reply sys_umask(Kernel&, Call& call) {
  return Reply::result(std::exchange(call.process->umask, call.args[0] & 0777));
}
// Three equal identities: real, effective, saved.
Reply sys_getresuid(Kernel&, Call& call) {
  for (int i = 0; i < 3; ++i)
    if (!call.memory.store(call.args[i], uint32_t{getuid()})) return Reply::error(EFAULT);
  return Reply::result(0);
}
Reply sys_getresgid(Kernel&, Call& call) {
  for (int i = 0; i < 3; ++i)
    if (!call.memory.store(call.args[i], uint32_t{getgid()})) return Reply::error(EFAULT);
  return Reply::result(0);
}
// A change to what is so already succeeds.
Reply sys_setuid(Kernel&, Call& call) {
  return Reply::result(static_cast<uint32_t>(call.args[0]) == getuid() ? 0 : -EPERM);
}
Reply sys_setgid(Kernel&, Call& call) {
  return Reply::result(static_cast<uint32_t>(call.args[0]) == getgid() ? 0 : -EPERM);
}
Reply sys_getgroups(Kernel&, Call&) { return Reply::result(0); }
Reply sys_success(Kernel&, Call&) { return Reply::result(0); }
Reply sys_uname(Kernel& kernel, Call& call) {
  constexpr size_t kField = 65;
  std::array<uint8_t, 6 * kField> names{};
  const std::string texts[6] = {"Linux", "gpusim", "6.1.0", "#1 gpusim", kernel.abi().machine,
                                "(none)"};
  for (size_t i = 0; i < 6; ++i)
    std::memcpy(names.data() + i * kField, texts[i].c_str(), std::min(texts[i].size(), kField - 1));
  return call.memory.write(call.args[0], names) ? Reply::result(0) : Reply::error(EFAULT);
}

// A process's threads' shares are not told apart.
Reply sys_getrusage(Kernel& kernel, Call& call) {
  const int64_t whom = call.int_arg(0);
  if (whom != RUSAGE_SELF && whom != RUSAGE_CHILDREN && whom != RUSAGE_THREAD)
    return Reply::error(EINVAL);
  const Family* const family = kernel.family();
  const Usage usage = whom != RUSAGE_CHILDREN ? kernel.usage()
                      : family                ? family->usage_of_children()
                                              : Usage{};
  return store_longs(call, call.args[1], usage.longs()) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_sysinfo(Kernel& kernel, Call& call) {
  const uint64_t size = kernel.memory_size_bytes();
  const bool ok = call.word_bytes == 4 ? store_sysinfo<uint32_t>(call, size)
                                       : store_sysinfo<uint64_t>(call, size);
  return ok ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_getrandom(Kernel&, Call& call) {
  // splitmix64 from the process's number: runs repeat exactly. Not for secrets.
  uint64_t& state = call.process->random_state;
  std::vector<uint8_t> bytes(std::min<uint64_t>(call.args[1], uint64_t{1} << 20));
  for (uint8_t& b : bytes) {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    b = static_cast<uint8_t>((z ^ (z >> 31)) >> 56);
  }
  return call.memory.write(call.args[0], bytes) ? Reply::result(static_cast<int64_t>(bytes.size()))
                                                : Reply::error(EFAULT);
}

}  // namespace gpusim::host
