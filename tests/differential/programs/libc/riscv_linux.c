// isa: riscv64
// What Linux has in its own way here: the signal frame, open flags, auxiliary vector, uname.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <ucontext.h>
#include <unistd.h>

static unsigned fcsr(void) {
  unsigned value;
  __asm__ volatile("frcsr %0" : "=r"(value)::"memory");
  return value;
}

static void set_fcsr(unsigned value) { __asm__ volatile("fscsr %0" ::"r"(value) : "memory"); }

static unsigned fcsr_in_handler, fcsr_in_frame;

// Leaves other flags, another rounding mode and other registers behind than it found.
static void spoil(int number, siginfo_t* info, void* context) {
  const ucontext_t* const at = context;
  fcsr_in_handler = fcsr();
  fcsr_in_frame = at->uc_mcontext.__fpregs.__d.__fcsr;
  set_fcsr(0x50);
  __asm__ volatile(
      "li t0, -1\n fmv.d.x ft0, t0\n fmv.d.x fs0, t0\n fmv.d.x fa0, t0\n"
      "li t1, 1\n li t6, 2\n li a5, 3\n" ::
          : "t0", "t1", "t6", "a5", "ft0", "fs0", "fa0");
  printf("signal %d code %d\n", number, info->si_code);
}

// Registers of all kinds live across a system call that ends in a handler.
static void registers_survive(void) {
  set_fcsr(0x21);
  unsigned long t1, t6, ft0, fs0, fa0;
  register long a0 __asm__("a0") = getpid();
  register long a1 __asm__("a1") = SIGUSR1;
  register long a7 __asm__("a7") = 129;  // kill
  __asm__ volatile(
      "li t1, 101\n li t6, 106\n li t0, 110\n fmv.d.x ft0, t0\n li t0, 111\n fmv.d.x fs0, t0\n"
      "li t0, 112\n fmv.d.x fa0, t0\n"
      "ecall\n"
      "mv %1, t1\n mv %2, t6\n fmv.x.d %3, ft0\n fmv.x.d %4, fs0\n fmv.x.d %5, fa0\n"
      : "+r"(a0), "=&r"(t1), "=&r"(t6), "=&r"(ft0), "=&r"(fs0), "=&r"(fa0)
      : "r"(a1), "r"(a7)
      : "t0", "t1", "t6", "ft0", "fs0", "fa0", "memory");
  printf("kill %ld: %lu %lu %lu %lu %lu\n", (long)a0, t1, t6, ft0, fs0, fa0);
  printf("fcsr %x, in the handler %x, in its frame %x\n", fcsr(), fcsr_in_handler, fcsr_in_frame);
  set_fcsr(0);
}

// Steps over the load and gives it a value.
static void repair(int number, siginfo_t* info, void* context) {
  ucontext_t* const at = context;
  printf("signal %d code %d at %p, t0 %lx\n", number, info->si_code, info->si_addr,
         at->uc_mcontext.__gregs[5]);
  at->uc_mcontext.__gregs[REG_PC] += 4;
  at->uc_mcontext.__gregs[6] = 77;
  at->uc_mcontext.__fpregs.__d.__f[10] = 78;
}

static void handlers_may_change_what_was_interrupted(void) {
  unsigned long t1, fa0;
  __asm__ volatile(
      ".option push\n.option norvc\n"
      "li t0, 16\n li t1, 1\n lw t1, 8(t0)\n mv %0, t1\n fmv.x.d %1, fa0\n"
      ".option pop"
      : "=r"(t1), "=r"(fa0)
      :
      : "t0", "t1", "fa0", "memory");
  printf("repaired: %lu %lu\n", t1, fa0);
}

static sigjmp_buf back;
static char alternate[16384];
static void leave(int number) {
  const char here = 0;
  printf("on its own stack: %d\n", &here >= alternate && &here < alternate + sizeof alternate);
  siglongjmp(back, number);
}

static void on(int number, int flags, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, NULL);
}

static void try_open(const char* what, const char* path, int flags) {
  errno = 0;
  const int file = open(path, O_RDONLY | flags);
  printf("%s: %s\n", what, file >= 0 ? "opened" : strerror(errno));
  if (file >= 0) close(file);
}

int main(void) {
  on(SIGUSR1, 0, spoil);
  registers_survive();

  on(SIGSEGV, 0, repair);
  handlers_may_change_what_was_interrupted();

  const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &action, NULL);
  const int number = sigsetjmp(back, 1);
  if (number == 0) *(volatile int*)8 = 1;
  printf("left with signal %d\n", number);
  sigaction(SIGTRAP, &action, NULL);
  sigaction(SIGILL, &action, NULL);
  if (sigsetjmp(back, 1) == 0) __asm__ volatile("ebreak");
  if (sigsetjmp(back, 1) == 0) __asm__ volatile(".word 0");

  try_open("folder as a folder", ".", O_DIRECTORY);
  try_open("file as a folder", "bare/bare.h", O_DIRECTORY);
  try_open("file without links", "bare/bare.h", O_NOFOLLOW);

  struct utsname names;
  uname(&names);
  printf("%s, hwcap %lx, hwcap2 %lx, platform %d\n", names.machine, getauxval(AT_HWCAP),
         getauxval(AT_HWCAP2), getauxval(AT_PLATFORM) != 0);
  return 0;
}
