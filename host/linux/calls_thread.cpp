// Threads: their beginning and end, names, and where they run.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/exit_status.h"
#include "host/linux/calls.h"
#include "host/linux/clone.h"

namespace gpusim::host {
namespace {

Reply clone_thread(Kernel& kernel, Call& call, const CloneRequest& request) {
  constexpr uint64_t kNeeded = kCloneVm | kCloneThread;
  if ((request.flags & kNeeded) != kNeeded) return clone_process(kernel, call, request);
  if (kernel.alive() >= call.process->limits[Limits::kThreads].current)
    return Reply::error(EAGAIN);
  const std::optional<uint32_t> core = kernel.start_thread(call.core);
  if (!core) {
    kernel.note_once("threads",
                     kernel.is_private()
                         ? "a process of a private machine has one core and no threads: clone returns "
                           "EAGAIN; --memory shared gives a process --cores N"
                     : kernel.alive() >= RunQueue::kMostThreads
                         ? "a process has at most 16,384 threads: clone returns EAGAIN"
                         : "no core is free for another thread, and here threads do not share "
                           "cores: clone returns EAGAIN; --cores gives a process more cores, and "
                           "--cpus tells it of fewer, where it starts a thread for each and others "
                           "beside");
    return Reply::error(EAGAIN);
  }
  Thread& thread = kernel.thread(*core);
  const auto tid = static_cast<uint32_t>(thread.tid);
  const AbiSlots& abi = kernel.module().abi;
  const auto set = [&](int slot, uint64_t value) {
    if (slot != kNoSlot) kernel.set_slot(*core, static_cast<Slot>(slot), value);
  };
  set(abi.syscall_result, 0);
  if (request.stack_pointer != 0) set(abi.stack_pointer, request.stack_pointer);
  if (request.flags & kCloneSetTls) set(abi.thread_pointer, request.tls);
  // As on Linux, a bad pointer here is the caller's loss and no error.
  if (request.flags & kCloneParentSetTid) call.memory.store(request.parent_tid, tid);
  if (request.flags & kCloneChildSetTid) call.memory.store(request.child_tid, tid);
  if (request.flags & kCloneChildClearTid) thread.clear_child_tid = request.child_tid;
  kernel.go_on(*core, call.resume_uop);
  return Reply::result(tid);
}

}  // namespace

Reply sys_clone(Kernel& kernel, Call& call) {
  return clone_thread(kernel, call,
                      {.flags = call.args[0],
                       .stack_pointer = call.args[1],
                       .parent_tid = call.args[2],
                       .child_tid = call.args[4],
                       .tls = call.args[3]});
}

Reply sys_clone3(Kernel& kernel, Call& call) {
  struct {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } args;
  static_assert(sizeof args == 64, "CLONE_ARGS_SIZE_VER0");
  if (call.args[1] < sizeof args) return Reply::error(EINVAL);
  if (!call.memory.load(call.args[0], &args)) return Reply::error(EFAULT);
  return clone_thread(kernel, call,
                      {.flags = args.flags,
                       .stack_pointer = args.stack + args.stack_size,
                       .parent_tid = args.parent_tid,
                       .child_tid = args.child_tid,
                       .tls = args.tls});
}

Reply sys_exit(Kernel&, Call& call) { return {Reply::Kind::kExitThread, call.int_arg(0) & 0xff}; }
Reply sys_exit_group(Kernel&, Call& call) {
  return {Reply::Kind::kExitProcess, call.int_arg(0) & 0xff};
}

Reply sys_gettid(Kernel& kernel, Call& call) {
  return Reply::result(kernel.tid(call.core));
}
Reply sys_set_tid_address(Kernel& kernel, Call& call) {
  Thread& thread = kernel.thread(call.core);
  thread.clear_child_tid = call.args[0];
  return Reply::result(thread.tid);
}

Reply sys_prctl(Kernel& kernel, Call& call) {
  constexpr int64_t kGetDumpable = 3, kSetName = 15, kGetName = 16, kSetNoNewPrivileges = 38,
                    kGetNoNewPrivileges = 39;
  constexpr size_t kNameSize = 16;
  std::string& name = kernel.thread(call.core).name;
  switch (call.int_arg(0)) {
    case kSetName: {
      std::optional<std::string> text = call.memory.string(call.args[1], kNameSize);
      if (!text) {  // longer ones are cut
        std::array<uint8_t, kNameSize - 1> bytes;
        if (!call.memory.read(call.args[1], bytes)) return Reply::error(EFAULT);
        text.emplace(bytes.begin(), bytes.end());
      }
      name = text->substr(0, kNameSize - 1);
      return Reply::result(0);
    }
    case kGetName: {
      std::array<uint8_t, kNameSize> bytes{};
      if (name.empty()) {
        name = kernel.paths().program();
        name = name.substr(name.rfind('/') + 1).substr(0, kNameSize - 1);
      }
      std::memcpy(bytes.data(), name.data(), name.size());
      return call.memory.write(call.args[1], bytes) ? Reply::result(0) : Reply::error(EFAULT);
    }
    case kGetDumpable:
      return Reply::result(1);
    case kSetNoNewPrivileges:
    case kGetNoNewPrivileges:
      return Reply::result(call.int_arg(0) == kGetNoNewPrivileges ? 1 : 0);
    default:
      return Reply::error(EINVAL);
  }
}

Reply sys_getcpu(Kernel& kernel, Call& call) {
  const uint32_t cpu = call.core % kernel.cpus(), node = 0;
  if (call.args[0] != 0 && !call.memory.store(call.args[0], cpu)) return Reply::error(EFAULT);
  if (call.args[1] != 0 && !call.memory.store(call.args[1], node)) return Reply::error(EFAULT);
  return Reply::result(0);
}

Reply sys_sched_getaffinity(Kernel& kernel, Call& call) {
  const uint64_t cpus = kernel.cpus(), needed = (cpus + 63) / 64 * 8;
  if (call.args[1] < needed || (call.args[1] & 7)) return Reply::error(EINVAL);
  std::vector<uint8_t> mask(needed);
  for (uint64_t i = 0; i < cpus; ++i) mask[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
  return call.memory.write(call.args[2], mask) ? Reply::result(static_cast<int64_t>(needed))
                                               : Reply::error(EFAULT);
}
// A thread runs where a core is free, wherever it would like to be.
Reply sys_sched_setaffinity(Kernel&, Call& call) {
  uint8_t first;
  return call.memory.load(call.args[2], &first) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_sched_yield(Kernel& kernel, Call& call) {
  kernel.yield(call.core);
  return Reply::result(0);
}

// One scheduling policy (SCHED_OTHER), one priority.
Reply sys_sched_zero(Kernel&, Call&) { return Reply::result(0); }
Reply sys_sched_getparam(Kernel&, Call& call) {
  return call.memory.store(call.args[1], int32_t{0}) ? Reply::result(0) : Reply::error(EFAULT);
}
Reply sys_getpriority(Kernel&, Call&) { return Reply::result(20); }  // 20 - nice

}  // namespace gpusim::host
