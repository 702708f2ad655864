// isa: aarch64
// Signals that a program sends to itself: handlers, masks, flags, the alternate stack, waiting.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count[65], depth, deepest, order[32], places;
static volatile int on_alternate;
static char alternate[32768];

static void note(int signal) {
  ++count[signal];
  if (places < 32) order[places++] = signal;
  if (++depth > deepest) deepest = depth;
  on_alternate = (char*)__builtin_frame_address(0) > alternate &&
                 (char*)__builtin_frame_address(0) < alternate + sizeof alternate;
  --depth;
}
static void note_and_nest(int signal) {
  if (++depth > deepest) deepest = depth;
  ++count[signal];
  if (signal == SIGUSR1 && count[signal] < 4) raise(SIGUSR1);
  if (signal == SIGUSR1) raise(SIGUSR2);
  --depth;
}
static void with_info(int signal, siginfo_t* info, void* context) {
  const ucontext_t* c = context;
  ++count[signal];
  printf("info: signo %d code %d pid ok %d uid ok %d, sp aligned %d, mask %lx\n", info->si_signo,
         info->si_code, info->si_pid == getpid(), info->si_uid == getuid(),
         c->uc_mcontext.sp % 16 == 0, *(const unsigned long*)&c->uc_sigmask);
}
static void with_value(int signal, siginfo_t* info, void* context) {
  (void)context;
  printf("queued: %d code %d value %d\n", signal, info->si_code, info->si_value.sival_int);
}
static void floats(int signal) {
  (void)signal;
  volatile double x = 1e300, y = 1e-300;
  for (int i = 0; i < 20; ++i) x = x * 0.5 + y;
  count[signal] += x > 0;
}
static jmp_buf back;
static sigjmp_buf back_with_mask;
static void leave(int signal) {
  ++count[signal];
  siglongjmp(back_with_mask, signal);
}

static void set(int signal, void (*handler)(int), int flags, int also) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (also) sigaddset(&action.sa_mask, also);
  if (sigaction(signal, &action, NULL)) perror("sigaction");
}
static void report(const char* what) {
  printf("%s:", what);
  for (int i = 1; i <= 64; ++i)
    if (count[i]) printf(" %d x%d", i, (int)count[i]);
  printf(", depth %d, order", (int)deepest);
  for (int i = 0; i < places; ++i) printf(" %d", (int)order[i]);
  printf(", alternate %d\n", on_alternate);
  memset((void*)count, 0, sizeof count);
  depth = deepest = places = on_alternate = 0;
}

int main(void) {
  sigset_t set1, old;
  signal(SIGUSR1, note);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR1);
  kill(0, 0);
  report("plain");

  set(SIGUSR1, note, 0, SIGUSR2);
  set(SIGUSR2, note, 0, 0);
  sigemptyset(&set1);
  sigaddset(&set1, SIGUSR1);
  sigaddset(&set1, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set1, &old);
  raise(SIGUSR2);
  raise(SIGUSR2);
  raise(SIGUSR1);
  sigset_t pending;
  sigpending(&pending);
  printf("pending %d %d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2),
         sigismember(&pending, SIGTERM));
  report("blocked");
  sigprocmask(SIG_SETMASK, &old, NULL);
  report("unblocked");

  set(SIGUSR1, note_and_nest, SA_NODEFER, 0);
  raise(SIGUSR1);
  report("nodefer");
  set(SIGUSR1, note_and_nest, 0, 0);
  count[SIGUSR1] = 0;
  raise(SIGUSR1);
  report("defer");

  set(SIGUSR1, note, SA_RESETHAND, 0);
  raise(SIGUSR1);
  struct sigaction now;
  sigaction(SIGUSR1, NULL, &now);
  printf("reset %d\n", now.sa_handler == SIG_DFL);
  report("resethand");

  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, former;
  printf("altstack %d", sigaltstack(&stack, NULL));
  printf(" %d", sigaltstack(NULL, &former));
  printf(" %d %d\n", former.ss_sp == alternate, former.ss_flags);
  set(SIGUSR1, note, SA_ONSTACK, 0);
  raise(SIGUSR1);
  report("onstack");
  set(SIGUSR1, note, 0, 0);
  raise(SIGUSR1);
  report("offstack");
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = with_info;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGHUP, &action, NULL);
  raise(SIGHUP);
  kill(getpid(), SIGHUP);
  action.sa_sigaction = with_value;
  sigaction(SIGRTMIN + 1, &action, NULL);
  sigemptyset(&set1);
  sigaddset(&set1, SIGRTMIN + 1);
  sigprocmask(SIG_BLOCK, &set1, NULL);
  for (int i = 0; i < 3; ++i) sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 10 + i});
  sigprocmask(SIG_UNBLOCK, &set1, NULL);
  report("real time");

  signal(SIGUSR2, floats);
  double a = 0;
  for (int i = 0; i < 10; ++i) {
    a += 0.1 * i;
    if (i == 5) raise(SIGUSR2);
  }
  printf("floats survive: %.17g\n", a);
  report("floats");

  signal(SIGTERM, leave);
  int got = sigsetjmp(back_with_mask, 1);
  if (got < 2) {
    if (got == 0) raise(SIGTERM);
  }
  sigprocmask(SIG_BLOCK, NULL, &old);
  printf("left with %d, blocked %d\n", got, sigismember(&old, SIGTERM));
  if (setjmp(back) == 0) longjmp(back, 1);
  report("longjmp");

  signal(SIGUSR1, note);
  sigemptyset(&set1);
  sigaddset(&set1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set1, &old);
  raise(SIGUSR1);
  sigset_t none;
  sigemptyset(&none);
  const int result = sigsuspend(&none);
  printf("sigsuspend %d %d\n", result, errno == EINTR);
  sigprocmask(SIG_BLOCK, NULL, &old);
  printf("mask is back %d\n", sigismember(&old, SIGUSR1));
  raise(SIGUSR1);
  siginfo_t info;
  printf("sigwaitinfo %d", sigwaitinfo(&set1, &info));
  printf(" code %d\n", info.si_code);
  const struct timespec soon = {.tv_nsec = 1000000};
  printf("sigtimedwait %d", sigtimedwait(&set1, &info, &soon));
  printf(" %d\n", errno == EAGAIN);
  sigprocmask(SIG_UNBLOCK, &set1, NULL);
  report("waiting");

  signal(SIGCHLD, SIG_DFL);
  raise(SIGCHLD);
  signal(SIGUSR1, SIG_IGN);
  raise(SIGUSR1);
  printf("kill stranger %d %d\n", kill(1 << 22, 0), errno == ESRCH);
  printf("bad number %d %d\n", kill(getpid(), 65), errno == EINVAL);
  signal(SIGKILL, note);
  printf("cannot catch KILL %d\n", errno == EINVAL);
  report("ignored");
  return 0;
}
