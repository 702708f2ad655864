// Identity, limits and use of resources of a process.
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

int64_t pid_of(const Call& call) { return kFirstPid + call.process->number; }

Reply limits(Kernel& kernel, Call& call, int64_t resource, uint64_t old_address) {
  constexpr uint64_t kInfinite = ~uint64_t{0};
  if (resource < 0 || resource >= RLIMIT_NLIMITS) return Reply::error(EINVAL);
  GuestRlimit limit{kInfinite, kInfinite};
  if (resource == RLIMIT_STACK) {
    // What C libraries size thread stacks by; the usual 8 MiB where the stack has less.
    limit.current = std::max<uint64_t>(kernel.plan().stack_size_bytes, 8 << 20);
  } else if (resource == RLIMIT_NOFILE) {
    limit = {FileTable::kMost, FileTable::kMost};
  } else if (resource == RLIMIT_CORE) {
    limit.current = 0;
  }
  if (old_address != 0 && !call.memory.store(old_address, limit)) return Reply::error(EFAULT);
  return Reply::result(0);
}

}  // namespace

Reply sys_enosys(Kernel&, Call&) { return Reply::error(ENOSYS); }

Reply sys_getpid(Kernel&, Call& call) { return Reply::result(pid_of(call)); }
Reply sys_getppid(Kernel&, Call&) { return Reply::result(kFirstPid - 1); }
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
// The process leads its group and its session.
Reply sys_getpgid(Kernel&, Call& call) { return Reply::result(pid_of(call)); }
Reply sys_setpgid(Kernel&, Call&) { return Reply::result(0); }
Reply sys_setsid(Kernel&, Call&) { return Reply::error(EPERM); }
Reply sys_wait4(Kernel&, Call&) { return Reply::error(ECHILD); }
Reply sys_success(Kernel&, Call&) { return Reply::result(0); }
Reply sys_uname(Kernel& kernel, Call& call) {
  constexpr size_t kField = 65;
  std::array<uint8_t, 6 * kField> names{};
  const std::string texts[6] = {"Linux", "gpusim", "6.1.0", "#1 gpusim", kernel.module().isa,
                                "(none)"};
  for (size_t i = 0; i < 6; ++i)
    std::memcpy(names.data() + i * kField, texts[i].c_str(), std::min(texts[i].size(), kField - 1));
  return call.memory.write(call.args[0], names) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_getrlimit(Kernel& kernel, Call& call) {
  return limits(kernel, call, call.int_arg(0), call.args[1]);
}
// Limits may be asked for and not be changed; setting them succeeds without effect.
Reply sys_prlimit64(Kernel& kernel, Call& call) {
  if (call.int_arg(0) != 0 && call.int_arg(0) != pid_of(call)) return Reply::error(ESRCH);
  return limits(kernel, call, call.int_arg(1), call.args[3]);
}

Reply sys_getrusage(Kernel&, Call& call) {
  struct rusage host;
  if (::getrusage(call.int_arg(0) == -1 ? RUSAGE_CHILDREN : RUSAGE_SELF, &host) < 0)
    return Reply::error(errno);
  static_assert(sizeof host == 144, "64-bit hosts have the generic layout");
  return call.memory.store(call.args[1], host) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_sysinfo(Kernel& kernel, Call& call) {
  struct sysinfo info {};
  const MachineConfig& config = kernel.plan().config;
  info.totalram = kernel.is_private() ? uint64_t{1} << config.window_shift : config.linear_size;
  info.freeram = info.totalram / 2;
  info.procs = 1;
  info.mem_unit = 1;
  return call.memory.store(call.args[0], info) ? Reply::result(0) : Reply::error(EFAULT);
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
