// Memory faults of kernels, and of host code on device memory, as sentences.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "emulated/runtime.h"
#include "standin/lanes.h"
#include "standin/memory.h"
#include "standin/places.h"
#include "standin/report.h"

namespace cuda_emulated {
namespace {

struct sigaction previous;

void on_fault(int number, siginfo_t* info, void* context) {
  const void* const at = info->si_addr;
  const std::string where = describe_address(at);
  const auto* const registers = static_cast<const ucontext_t*>(context);
  const auto pc = static_cast<uintptr_t>(registers->uc_mcontext.gregs[REG_RIP]);
  const std::string place = describe_place(reinterpret_cast<const void*>(pc + 1));
  if (in_kernel()) {
    report(cudaErrorIllegalAddress, running_lane() + " accesses " +
           (is_on_lane_stack(at) ? "more stack than a lane has" : where) + ", " + place);
  } else if (where.find("device memory") != std::string::npos &&
             where.find("is no") == std::string::npos) {
    report(cudaErrorIllegalAddress, "host code accesses " + where + ", " + place);
  } else {
    sigaction(number, &previous, nullptr);  // not ours: it happens again
    return;
  }
  _exit(kReportedStatus);
}

}  // namespace

void watch_faults() {
  static const bool done = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGSEGV, &action, &previous) == 0;
  }();
  static_cast<void>(done);
  // Kernels' lanes have small stacks, which may be what has no room.
  constexpr size_t kStack = 1 << 20;
  thread_local const bool has_stack = [] {
    stack_t stack{};
    stack.ss_sp = std::malloc(kStack);
    stack.ss_size = kStack;
    return sigaltstack(&stack, nullptr) == 0;
  }();
  static_cast<void>(has_stack);
}

}  // namespace cuda_emulated
