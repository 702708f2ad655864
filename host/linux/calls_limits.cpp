// Resource limits: what is enforced where, says docs/cli.md.
#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

bool is_resource(int64_t number) { return number >= 0 && number < Limits::kCount; }

Reply set_limit(Kernel& kernel, Call& call, int64_t resource, uint64_t address) {
  GuestRlimit next;
  if (!call.memory.load(address, &next)) return Reply::error(EFAULT);
  if (next.current > next.most) return Reply::error(EINVAL);
  GuestRlimit& limit = call.process->limits[resource];
  if (next.most > limit.most) return Reply::error(EPERM);  // as for those without privileges
  limit = next;
  if (resource == Limits::kOpenFiles) call.process->files.set_limit(next.current);
  if (resource == Limits::kCpu) {
    call.process->next_cpu_signal = 0;
    kernel.watch_timers(call.core);
  }
  return Reply::result(0);
}

}  // namespace

Reply sys_getrlimit(Kernel&, Call& call) {
  if (!is_resource(call.int_arg(0))) return Reply::error(EINVAL);
  return call.memory.store(call.args[1], call.process->limits[call.int_arg(0)])
             ? Reply::result(0)
             : Reply::error(EFAULT);
}

Reply sys_setrlimit(Kernel& kernel, Call& call) {
  if (!is_resource(call.int_arg(0))) return Reply::error(EINVAL);
  return set_limit(kernel, call, call.int_arg(0), call.args[1]);
}

Reply sys_prlimit64(Kernel& kernel, Call& call) {
  const int64_t pid = call.int_arg(0);
  if (pid != 0 && pid != call.process->pid && !kernel.core_of_thread(pid))
    return Reply::error(ESRCH);
  if (!is_resource(call.int_arg(1))) return Reply::error(EINVAL);
  const GuestRlimit before = call.process->limits[call.int_arg(1)];
  if (call.args[2] != 0) {
    const Reply reply = set_limit(kernel, call, call.int_arg(1), call.args[2]);
    if (reply.value != 0) return reply;
  }
  if (call.args[3] != 0 && !call.memory.store(call.args[3], before)) return Reply::error(EFAULT);
  return Reply::result(0);
}

}  // namespace gpusim::host
