#include "device_sim/native/traps.h"

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

namespace gpusim::native {
namespace {

thread_local const Traps* running = nullptr;
thread_local bool is_passed_on = false;
struct sigaction action_before;

void on_fault(int signal, siginfo_t* info, void* context) {
  greg_t& pc = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const bool is_access = info->si_code > 0;  // not sent by somebody
  if (is_access && running != nullptr)
    if (const uint64_t slow = running->slow_path(static_cast<uint64_t>(pc))) {
      pc = static_cast<greg_t>(slow);
      return;
    }
  const bool has_handler =
      (action_before.sa_flags & SA_SIGINFO) ||
      (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN);
  // The other handler may itself pass signals on to this one.
  if (has_handler && !std::exchange(is_passed_on, true)) {
    if (action_before.sa_flags & SA_SIGINFO)
      action_before.sa_sigaction(signal, info, context);
    else
      action_before.sa_handler(signal);
    is_passed_on = false;
    return;
  }
  std::signal(signal, SIG_DFL);
  // An access is repeated, and ends the program.
  if (!is_access) raise(signal);
}

// A fault whose signal is blocked ends the process, and who started it may have blocked it.
void unblock_faults() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

}  // namespace

void Traps::add(Trap trap) { traps_.push_back(trap); }

uint64_t Traps::slow_path(uint64_t address) const {
  const uint64_t place = address - base_;
  const auto next = std::upper_bound(traps_.begin(), traps_.end(), place,
                                     [](uint64_t p, const Trap& t) { return p < t.begin; });
  if (next == traps_.begin()) return 0;
  const Trap& trap = *std::prev(next);
  return place < trap.end ? base_ + trap.slow : 0;
}

Trapping::Trapping(const Traps& traps) {
  thread_local bool is_unblocked = false;
  if (!std::exchange(is_unblocked, true)) unblock_faults();
  running = &traps;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
Trapping::~Trapping() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running = nullptr;
}

void handle_faults() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  action_before = now;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace gpusim::native
