// isa: aarch64
// Synchronous faults: code, address, pc and registers that handlers see, and the ways out of them.
// flags: -fno-tree-vectorize -w
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int seen;
static uint64_t expected_pc, page;
static ucontext_t last;

static void describe(int signal, siginfo_t* info, void* context) {
  last = *(ucontext_t*)context;
  const mcontext_t* m = &last.uc_mcontext;
  // QEMU says ILL_ILLOPN (2) for every undefined instruction, Linux ILL_ILLOPC (1).
  const int code = signal == SIGILL ? 0 : info->si_code;
  printf("signal %d code %d, address %s%lx, fault_address %lx\n", signal, code,
         (uint64_t)info->si_addr == m->pc ? "pc" : "",
         (uint64_t)info->si_addr == m->pc ? 0
         : (uint64_t)info->si_addr >= page && (uint64_t)info->si_addr <= page + 8192
             ? (uint64_t)info->si_addr - page
             : (uint64_t)info->si_addr,
         signal == SIGSEGV && m->fault_address == (uint64_t)info->si_addr);
}
static void skip(int signal, siginfo_t* info, void* context) {
  describe(signal, info, context);
  ((ucontext_t*)context)->uc_mcontext.pc += 4;
}
static void leave(int signal, siginfo_t* info, void* context) {
  describe(signal, info, context);
  siglongjmp(back, signal);
}
static void repair(int signal, siginfo_t* info, void* context) {
  describe(signal, info, context);
  mprotect((void*)page, 4096, PROT_READ | PROT_WRITE);
}
static void set_x5(int signal, siginfo_t* info, void* context) {
  describe(signal, info, context);
  ((ucontext_t*)context)->uc_mcontext.regs[5] = 0x1234;
  ((ucontext_t*)context)->uc_mcontext.pstate ^= 0xf0000000;
  ((ucontext_t*)context)->uc_mcontext.pc += 4;
}
static void catch(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal, &action, NULL);
}

int main(void) {
  page = (uint64_t)mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int s = 0; s < 4; ++s) catch((int[]){SIGSEGV, SIGBUS, SIGTRAP, SIGILL}[s], skip);

  *(volatile int*)0 = 1;
  puts("store to nothing skipped");
  const int x = *(volatile int*)16;
  puts("load from nothing skipped");
  *(volatile char*)(uintptr_t)&main = 1;
  puts("store to code skipped");
  mprotect((void*)page, 4096, PROT_NONE);
  *(volatile char*)(page + 100) = 1;
  mprotect((void*)page, 4096, PROT_READ);
  *(volatile char*)(page + 101) = 1;
  *(volatile uint64_t*)(page + 4096) = 7;
  printf("read-only: %d\n", *(volatile char*)(page + 101));
  munmap((void*)(page + 4096), 4096);
  const uint64_t y = *(volatile uint64_t*)(page + 4092);
  puts("load across the end skipped");
  __asm__ volatile("brk #7");
  puts("brk skipped");

  // What comes before a fault is done, what comes after is not.
  uint64_t a = 1, b = 2, c = 3, flags = 0;
  catch(SIGSEGV, set_x5);
  __asm__ volatile(
      "mov x5, #9\n mov x6, #0\n mov %0, #10\n cmp %0, #11\n"
      "add %1, %0, #1\n"
      "ldr x6, [x6]\n"
      "mrs %3, nzcv\n"
      "add %2, %1, x5\n"
      : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(flags)
      :
      : "x5", "x6", "cc");
  printf("%lu %lu %lu flags %lx, in the handler %lx\n", a, b, c, flags,
         (uint64_t)last.uc_mcontext.pstate);
  // A comparison that is used after the fault only.
  uint64_t less = 5;
  __asm__ volatile(
      "mov x6, #8\n cmp %1, %2\n ldr x7, [x6]\n"
      "b.lt 1f\n mov %0, #0\n b 2f\n 1: mov %0, #1\n 2:\n"
      : "=r"(less)
      : "r"(a), "r"(b)
      : "x6", "x7", "cc", "x5");
  printf("less, flags turned by the handler: %lu\n", less);

  catch(SIGSEGV, repair);
  mprotect((void*)page, 4096, PROT_NONE);
  *(volatile char*)(page + 7) = 42;
  printf("repaired: %d\n", *(volatile char*)(page + 7));

  catch(SIGSEGV, leave);
  volatile int turn = 0;
  const int got = sigsetjmp(back, 1);
  if (turn++ < 3) {
    *(volatile char*)(uintptr_t)(turn * 64) = 1;
    puts("not reached");
  }
  printf("left with %d after %d\n", got, turn);
  if (sigsetjmp(back, 1) == 0) ((void (*)(void))0x10)();
  if (sigsetjmp(back, 1) == 0) ((void (*)(void))page)();
  puts("jumps to nowhere left");
  catch(SIGBUS, leave);
  if (sigsetjmp(back, 1) == 0) {
    uint64_t t = page + 1;
    __asm__ volatile("ldaxr w6, [%0]\n" : : "r"(t) : "x6", "memory");
    puts("misaligned ldaxr passed");
  }
  catch(SIGILL, leave);
  if (sigsetjmp(back, 1) == 0) __asm__ volatile("udf #0");
  puts("done");
  return 0;
}
