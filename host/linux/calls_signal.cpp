// Signals: actions, masks, sending, waiting.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/signal_frame.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kSetSize = 8;

int64_t pid_of(const Process& process) { return process.pid; }

SignalInfo sent_by(const Call& call, int64_t signal, int32_t code) {
  return {.number = static_cast<int32_t>(signal),
          .code = code,
          .pid = static_cast<int32_t>(pid_of(*call.process)),
          .uid = getuid()};
}

// Whether this signal ends the process of the thread on that core.
bool is_fatal(Kernel& kernel, Call& call, uint32_t core, int64_t signal) {
  const auto it = call.process->signal_actions.find(static_cast<int>(signal));
  const bool is_default = it == call.process->signal_actions.end() || it->second.handler == 0;
  return is_default && !is_ignored_by_default(static_cast<int>(signal)) &&
         !(signal_bit(static_cast<int>(signal)) & kStopping) &&
         !(kernel.thread(core).mask & signal_bit(static_cast<int>(signal)));
}

Reply send_to_thread(Kernel& kernel, Call& call, int64_t tid, int64_t signal, SignalInfo info) {
  const auto core = kernel.core_of_thread(tid);
  if (!core || (kernel.is_private() && *core != call.core)) return Reply::error(ESRCH);
  if (signal < 0 || signal > kSignalCount) return Reply::error(EINVAL);
  if (signal == 0) return Reply::result(0);
  if (is_fatal(kernel, call, *core, signal)) return {Reply::Kind::kSignal, signal};
  kernel.post(*core, info);
  return Reply::result(0);
}

Reply send_to_process(Kernel& kernel, Call& call, int64_t pid, int64_t signal, SignalInfo info) {
  const int64_t own = pid_of(*call.process);
  if (Family* const family = kernel.family()) {
    if (signal < 0 || signal > kSignalCount) return Reply::error(EINVAL);
    constexpr int64_t kAllOthers = -1;
    if (pid == kAllOthers)
      return family->send(pid, static_cast<int32_t>(signal)) > 0 ? Reply::result(0)
                                                                 : Reply::error(ESRCH);
    const int64_t to = pid == 0 ? -family->group_of(0) : pid;
    const bool reached = to != own && to != kernel.tid(call.core) &&
                         family->send(to, static_cast<int32_t>(signal)) > 0;
    const bool is_own = to == own || to == -family->group_of(0) || to == kernel.tid(call.core);
    if (!is_own) return reached ? Reply::result(0) : Reply::error(ESRCH);
    pid = own;
  }
  if (pid != 0 && pid != own && pid != -own && pid != kernel.tid(call.core))
    return Reply::error(ESRCH);
  if (signal < 0 || signal > kSignalCount) return Reply::error(EINVAL);
  if (signal == 0) return Reply::result(0);
  if (is_fatal(kernel, call, call.core, signal)) return {Reply::Kind::kSignal, signal};
  kernel.post(*call.process, call.core, info);
  return Reply::result(0);
}

// siginfo_t as sigqueue(3) and sigwaitinfo(2) have it.
template <class Word>
bool load_queued(const Call& call, uint64_t address, int64_t signal, SignalInfo* info) {
  GuestSigInfo<Word> guest;
  if (!call.memory.load(address, &guest)) return false;
  *info = {.number = static_cast<int32_t>(signal),
           .code = guest.code,
           .pid = guest.sender.pid,
           .uid = guest.sender.uid,
           .value = guest.sender.value};
  return true;
}
bool load_queued(const Call& call, uint64_t address, int64_t signal, SignalInfo* info) {
  return call.word_bytes == 4 ? load_queued<uint32_t>(call, address, signal, info)
                              : load_queued<uint64_t>(call, address, signal, info);
}
bool store_queued(const Call& call, uint64_t address, SignalInfo info) {
  info.is_fault = false;
  return call.word_bytes == 4 ? call.memory.store(address, guest_siginfo<uint32_t>(info))
                              : call.memory.store(address, guest_siginfo<uint64_t>(info));
}

// struct sigaction of 32-bit kernels.
struct NarrowAction {
  uint32_t handler, flags;
  std::array<uint32_t, 2> mask;
};

// struct sigaction of the kernel: sa_restorer stands before the mask, on ISAs that have it.
bool load_action(const Kernel& kernel, const Call& call, uint64_t address, SignalAction* action) {
  if (call.word_bytes == 4) {
    NarrowAction narrow;
    if (!call.memory.load(address, &narrow)) return false;
    *action = {.handler = narrow.handler,
               .flags = narrow.flags,
               .restorer = 0,
               .mask = std::bit_cast<uint64_t>(narrow.mask)};
    return true;
  }
  if (kernel.abi().has_restorer) return call.memory.load(address, action);
  uint64_t words[3];
  if (!call.memory.load(address, &words)) return false;
  *action = {.handler = words[0], .flags = words[1], .restorer = 0, .mask = words[2]};
  return true;
}
bool store_action(const Kernel& kernel, const Call& call, uint64_t address,
                  const SignalAction& action) {
  if (call.word_bytes == 4) {
    const NarrowAction narrow{static_cast<uint32_t>(action.handler),
                              static_cast<uint32_t>(action.flags),
                              std::bit_cast<std::array<uint32_t, 2>>(action.mask)};
    return call.memory.store(address, narrow);
  }
  if (kernel.abi().has_restorer) return call.memory.store(address, action);
  const uint64_t words[3] = {action.handler, action.flags, action.mask};
  return call.memory.store(address, words);
}

bool load_stack(const Call& call, uint64_t address, SignalStack* stack) {
  if (call.word_bytes == 8) return call.memory.load(address, stack);
  GuestSignalStack<uint32_t> narrow;
  if (!call.memory.load(address, &narrow)) return false;
  *stack = signal_stack(narrow);
  return true;
}
bool store_stack(const Call& call, uint64_t address, const SignalStack& stack) {
  if (call.word_bytes == 8) return call.memory.store(address, stack);
  return call.memory.store(address, guest_signal_stack<uint32_t>(stack));
}

// RLIMIT_SIGPENDING.
bool has_room_for_signal(Kernel& kernel, const Call& call) {
  return call.process->pending.size() + kernel.thread(call.core).pending.size() <
         call.process->limits[Limits::kPendingSignals].current;
}

}  // namespace

Reply sys_kill(Kernel& kernel, Call& call) {
  return send_to_process(kernel, call, call.int_arg(0), call.int_arg(1),
                         sent_by(call, call.int_arg(1), kSiUser));
}
Reply sys_tkill(Kernel& kernel, Call& call) {
  return send_to_thread(kernel, call, call.int_arg(0), call.int_arg(1),
                        sent_by(call, call.int_arg(1), kSiTkill));
}
Reply sys_tgkill(Kernel& kernel, Call& call) {
  if (call.int_arg(0) != pid_of(*call.process)) return Reply::error(ESRCH);
  return send_to_thread(kernel, call, call.int_arg(1), call.int_arg(2),
                        sent_by(call, call.int_arg(2), kSiTkill));
}
Reply sys_rt_sigqueueinfo(Kernel& kernel, Call& call) {
  SignalInfo info;
  const int64_t signal = call.int_arg(1);
  if (!load_queued(call, call.args[2], signal, &info)) return Reply::error(EFAULT);
  if (!has_room_for_signal(kernel, call)) return Reply::error(EAGAIN);
  return send_to_process(kernel, call, call.int_arg(0), signal, info);
}
Reply sys_rt_tgsigqueueinfo(Kernel& kernel, Call& call) {
  SignalInfo info;
  const int64_t signal = call.int_arg(2);
  if (!load_queued(call, call.args[3], signal, &info)) return Reply::error(EFAULT);
  if (call.int_arg(0) != pid_of(*call.process)) return Reply::error(ESRCH);
  if (!has_room_for_signal(kernel, call)) return Reply::error(EAGAIN);
  return send_to_thread(kernel, call, call.int_arg(1), signal, info);
}

Reply sys_rt_sigaction(Kernel& kernel, Call& call) {
  const int64_t signal = call.int_arg(0);
  if (signal < 1 || signal > kSignalCount || call.args[3] != kSetSize) return Reply::error(EINVAL);
  const int number = static_cast<int>(signal);
  SignalAction& action = call.process->signal_actions[number];
  SignalAction next = action;
  if (call.args[1] != 0) {
    if (signal_bit(number) & kUnblockable) return Reply::error(EINVAL);
    if (!load_action(kernel, call, call.args[1], &next)) return Reply::error(EFAULT);
  }
  if (call.args[2] != 0 && !store_action(kernel, call, call.args[2], action))
    return Reply::error(EFAULT);
  action = next;
  if (action.has_handler() && (signal_bit(number) & kSynchronous)) kernel.want_exact_state();
  if (action.handler == 1 || (action.handler == 0 && is_ignored_by_default(number))) {
    call.process->pending.remove(number);
    kernel.thread(call.core).pending.remove(number);
  }
  return Reply::result(0);
}

Reply sys_rt_sigprocmask(Kernel& kernel, Call& call) {
  if (call.args[3] != kSetSize) return Reply::error(EINVAL);
  uint64_t& mask = kernel.thread(call.core).mask;
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
  mask = next & ~kUnblockable;
  return Reply::result(0);
}

Reply sys_rt_sigpending(Kernel& kernel, Call& call) {
  if (call.args[1] > kSetSize) return Reply::error(EINVAL);
  const uint64_t set = kernel.pending(call.core) & kernel.thread(call.core).mask;
  return call.memory.store(call.args[0], set) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_rt_sigsuspend(Kernel& kernel, Call& call) {
  uint64_t mask;
  if (call.args[1] != kSetSize) return Reply::error(EINVAL);
  if (!call.memory.load(call.args[0], &mask)) return Reply::error(EFAULT);
  Thread& thread = kernel.thread(call.core);
  thread.saved_mask = thread.mask;
  thread.mask = mask & ~kUnblockable;
  kernel.forget_ignored(call.core);
  if (kernel.deliverable(call.core) != 0) return Reply::error(EINTR);
  return kernel.park({.core = call.core,
                      .resume_uop = call.resume_uop,
                      .space = call.process->number,
                      .deadline = {}});
}

Reply sys_rt_sigtimedwait(Kernel& kernel, Call& call) {
  uint64_t set;
  if (call.args[3] != kSetSize) return Reply::error(EINVAL);
  if (!call.memory.load(call.args[0], &set)) return Reply::error(EFAULT);
  Thread& thread = kernel.thread(call.core);
  if (const auto info = kernel.take_signal(call.core, set)) {
    if (call.args[1] != 0 && !store_queued(call, call.args[1], *info)) return Reply::error(EFAULT);
    return Reply::result(info->number);
  }
  if (call.args[2] != 0 && !thread.retry_deadline) {
    GuestTimespec t;
    if (!call.memory.load(call.args[2], &t)) return Reply::error(EFAULT);
    if (t.seconds < 0 || t.nanoseconds < 0 || t.nanoseconds >= 1'000'000'000)
      return Reply::error(EINVAL);
    thread.retry_deadline = Clock::now() +
                            std::chrono::seconds(std::min<int64_t>(t.seconds, int64_t{1} << 32)) +
                            std::chrono::nanoseconds(t.nanoseconds);
  }
  if (thread.retry_deadline && *thread.retry_deadline <= Clock::now()) {
    thread.retry_deadline.reset();
    return Reply::error(EAGAIN);
  }
  return kernel.park_for_retry(call, {});
}

Reply sys_rt_sigreturn(Kernel& kernel, Call& call) { return kernel.signal_return(call.core); }

Reply sys_sigaltstack(Kernel& kernel, Call& call) {
  Thread& thread = kernel.thread(call.core);
  const int sp_slot = kernel.module().abi.stack_pointer;
  const uint64_t sp =
      sp_slot == kNoSlot ? 0 : kernel.backend().slot(call.core, static_cast<Slot>(sp_slot));
  SignalStack old = thread.alternate_stack;
  const bool is_set = !(old.flags & SignalStack::kDisable);
  const bool on_it = is_set && old.contains(sp);
  if (on_it) old.flags |= SignalStack::kOnStack;
  if (call.args[0] != 0) {
    SignalStack next;
    if (!load_stack(call, call.args[0], &next)) return Reply::error(EFAULT);
    if (on_it) return Reply::error(EPERM);
    next.flags &= ~SignalStack::kOnStack;
    if (next.flags & ~(SignalStack::kDisable | INT32_MIN)) return Reply::error(EINVAL);
    if (next.flags & SignalStack::kDisable)
      next = SignalStack{};
    else if (next.size < kernel.abi().least_signal_stack)
      return Reply::error(ENOMEM);
    thread.alternate_stack = next;
  }
  if (call.args[1] != 0 && !store_stack(call, call.args[1], old)) return Reply::error(EFAULT);
  return Reply::result(0);
}

}  // namespace gpusim::host
