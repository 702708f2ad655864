// Identity, limits, signals and the end of a process.
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

// Numbers that repeat from run to run, far from those that mean something (0, 1).
constexpr int64_t kFirstPid = 1000;

int64_t pid_of(const Call& call) { return kFirstPid + call.process->number; }
int64_t tid_of(Kernel& kernel, const Call& call) {
  return kernel.is_private() ? pid_of(call) : kFirstPid + call.core;
}

bool ignored_by_default(int64_t signal) {
  return signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
}

// A signal that the guest sends to itself.
Reply raise_signal(Kernel& kernel, Call& call, int64_t signal) {
  if (signal < 0 || signal > 64) return Reply::error(EINVAL);
  const uint64_t handler = call.process->signal_actions[static_cast<int>(signal)].handler;
  if (signal == 0 || handler == 1 || (handler == 0 && ignored_by_default(signal)))
    return Reply::result(0);
  if (handler > 1 && signal != SIGABRT) {
    kernel.note_once("signal handler", "signals are not delivered to handlers of the guest");
    return Reply::result(0);
  }
  return {Reply::Kind::kSignal, signal};
}

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

Reply sys_exit(Kernel&, Call& call) { return {Reply::Kind::kExitThread, call.int_arg(0) & 0xff}; }
Reply sys_exit_group(Kernel&, Call& call) {
  return {Reply::Kind::kExitProcess, call.int_arg(0) & 0xff};
}

Reply sys_getpid(Kernel&, Call& call) { return Reply::result(pid_of(call)); }
Reply sys_getppid(Kernel&, Call&) { return Reply::result(kFirstPid - 1); }
Reply sys_gettid(Kernel& kernel, Call& call) { return Reply::result(tid_of(kernel, call)); }
Reply sys_getuid(Kernel&, Call&) { return Reply::result(getuid()); }
Reply sys_geteuid(Kernel&, Call&) { return Reply::result(geteuid()); }
Reply sys_getgid(Kernel&, Call&) { return Reply::result(getgid()); }
Reply sys_getegid(Kernel&, Call&) { return Reply::result(getegid()); }
Reply sys_umask(Kernel&, Call&) { return Reply::result(022); }
Reply sys_set_tid_address(Kernel& kernel, Call& call) {
  return Reply::result(tid_of(kernel, call));
}

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

Reply sys_prctl(Kernel&, Call& call) {
  constexpr int64_t kSetName = 15;
  return call.int_arg(0) == kSetName ? Reply::result(0) : Reply::error(EINVAL);
}

Reply sys_getcpu(Kernel& kernel, Call& call) {
  const uint32_t cpu = kernel.is_private() ? 0 : call.core, node = 0;
  if (call.args[0] != 0 && !call.memory.store(call.args[0], cpu)) return Reply::error(EFAULT);
  if (call.args[1] != 0 && !call.memory.store(call.args[1], node)) return Reply::error(EFAULT);
  return Reply::result(0);
}

// A process of the private model sees one processor, one of the shared model all cores.
Reply sys_sched_getaffinity(Kernel& kernel, Call& call) {
  const uint64_t cores = kernel.is_private() ? 1 : kernel.plan().config.cores;
  const uint64_t needed = (cores + 63) / 64 * 8;
  if (call.args[1] < needed || (call.args[1] & 7)) return Reply::error(EINVAL);
  std::vector<uint8_t> mask(needed);
  for (uint64_t i = 0; i < cores; ++i) mask[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
  return call.memory.write(call.args[2], mask) ? Reply::result(static_cast<int64_t>(needed))
                                               : Reply::error(EFAULT);
}

Reply sys_sched_yield(Kernel&, Call&) { return Reply::result(0); }

Reply sys_kill(Kernel& kernel, Call& call) {
  const int64_t target = call.int_arg(0);
  if (target != 0 && target != pid_of(call) && target != tid_of(kernel, call))
    return Reply::error(ESRCH);
  return raise_signal(kernel, call, call.int_arg(1));
}
Reply sys_tgkill(Kernel& kernel, Call& call) {
  if (call.int_arg(0) != pid_of(call) || call.int_arg(1) != tid_of(kernel, call))
    return Reply::error(ESRCH);
  return raise_signal(kernel, call, call.int_arg(2));
}

Reply sys_rt_sigaction(Kernel&, Call& call) {
  const int64_t signal = call.int_arg(0);
  if (signal < 1 || signal > 64 || call.args[3] != 8) return Reply::error(EINVAL);
  SignalAction& action = call.process->signal_actions[static_cast<int>(signal)];
  SignalAction next = action;
  if (call.args[1] != 0) {
    if (signal == SIGKILL || signal == SIGSTOP) return Reply::error(EINVAL);
    if (!call.memory.load(call.args[1], &next)) return Reply::error(EFAULT);
  }
  if (call.args[2] != 0 && !call.memory.store(call.args[2], action)) return Reply::error(EFAULT);
  action = next;
  return Reply::result(0);
}

Reply sys_rt_sigprocmask(Kernel&, Call& call) {
  if (call.args[3] != 8) return Reply::error(EINVAL);
  uint64_t& mask = call.process->signal_mask;
  uint64_t next = mask;
  if (call.args[1] != 0) {
    uint64_t set;
    if (!call.memory.load(call.args[1], &set)) return Reply::error(EFAULT);
    switch (call.int_arg(0)) {
      case 0:
        next |= set;
        break;
      case 1:
        next &= ~set;
        break;
      case 2:
        next = set;
        break;
      default:
        return Reply::error(EINVAL);
    }
  }
  if (call.args[2] != 0 && !call.memory.store(call.args[2], mask)) return Reply::error(EFAULT);
  mask = next;
  return Reply::result(0);
}

// Never used: no signal is delivered. A stack that was not set reads as disabled.
Reply sys_sigaltstack(Kernel&, Call& call) {
  struct {
    uint64_t base = 0;
    int32_t flags = 2, pad = 0;  // SS_DISABLE
    uint64_t size = 0;
  } none;
  if (call.args[1] != 0 && !call.memory.store(call.args[1], none)) return Reply::error(EFAULT);
  return Reply::result(0);
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
