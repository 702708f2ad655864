// Ways in which control comes to code for the first time: calls, pointers, tables of jumps, returns
// into frames far away, signal handlers, threads; and code that is never executed and holds
// instructions that nobody knows.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __riscv
#define UNKNOWN ".4byte 0x0000007b\n"
#else
#define UNKNOWN ".inst 0x04e0e3e0\n"
#endif

__attribute__((noinline)) static void dormant(void) { asm volatile(UNKNOWN UNKNOWN); }

static sigjmp_buf back;
static volatile int faults;

static void on_fault(int signal) {
  (void)signal;
  ++faults;
  siglongjmp(back, 1);
}

static void *add_up(void *argument) {
  double *sum = argument;
  for (int i = 1; i < 500; ++i) *sum += sqrt(i);
  return 0;
}

static int choose(int n) {
  switch (n) {
    case 0: return 3;
    case 1: return (int)strlen(getenv("NOTHING") ? "some" : "none at all");
    case 2: return abs(n - 7);
    case 3: return n * 11;
    case 4: return -n;
    case 5: return n << 4;
    default: return n ^ 21;
  }
}

static int by_size(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// A loop whose head is entered from its middle, flags that are read behind a call, and a block that
// begins inside of another.
long odd_flow(long n);
#if __riscv
asm(".globl odd_flow\n.type odd_flow, %function\n"
    "odd_flow: li t0, 0\n"
    "mv t1, ra\n"
    "jal keeps_count\n"
    "mv ra, t1\n"
    "sltiu t2, a0, 6\n"
    "j 2f\n"
    "1: addi t0, t0, 3\n"
    "2: addi a0, a0, -1\n"
    "la t3, 3f\n"
    "andi t4, a0, 1\n"
    "beqz t4, 4f\n"
    "jr t3\n"
    "4: addi t0, t0, 1\n"
    "3: add t0, t0, t2\n"
    "bnez a0, 1b\n"
    "mv a0, t0\n"
    "ret\n"
    ".type keeps_count, %function\n"
    "keeps_count: addi t0, t0, 1\n"
    "ret\n");
#else
asm(".globl odd_flow\n.type odd_flow, %function\n"
    "odd_flow: mov x9, #0\n"
    "cmp x0, #5\n"
    "mov x10, x30\n"
    "bl keeps_flags\n"
    "mov x30, x10\n"
    "cset x11, hi\n"
    "b 2f\n"
    "1: add x9, x9, #3\n"
    "2: sub x0, x0, #1\n"
    "adr x12, 3f\n"
    "tbz x0, #0, 4f\n"
    "br x12\n"
    "4: add x9, x9, #1\n"
    "3: add x9, x9, x11\n"
    "cbnz x0, 1b\n"
    "mov x0, x9\n"
    "ret\n"
    ".type keeps_flags, %function\n"
    "keeps_flags: add x9, x9, #1\n"
    "ret\n");
#endif

// Accesses whose value goes nowhere.
static long dropped(void) {
  long n = 5;
#if __riscv
  asm volatile("ld zero, (%0)\namoadd.d zero, %1, (%0)\n" : : "r"(&n), "r"(2L) : "memory");
#else
  asm volatile("ldr xzr, [%0]\n.arch_extension lse\nstadd %1, [%0]\n"
               : : "r"(&n), "r"(2L) : "memory");
#endif
  return n;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int table[64], sum = 0;
  for (int i = 0; i < 64; ++i) table[i] = (i * 37) % 101;
  qsort(table, 64, sizeof table[0], by_size);
  for (int i = 0; i < 64; ++i) sum += table[i] * choose(i % 8);
  printf("%d %ld %ld %ld\n", sum, odd_flow(40), odd_flow(3), dropped());
  printf("%.6f %s\n", sin(sum) * exp(0.25), strchr("dormant code", 'm'));
  if (strcmp(what, "dormant") == 0) dormant();
  if (strcmp(what, "fault") == 0) {
    signal(SIGSEGV, on_fault);
    for (volatile int i = 0; i < 3; ++i)
      if (sigsetjmp(back, 1) == 0) *(volatile int *)8 = 1;
    printf("%d faults\n", faults);
  }
  if (strcmp(what, "nowhere") == 0) ((void (*)(void))0x10)();
  if (strcmp(what, "threads") == 0) {
    pthread_t threads[3];
    double sums[3] = {0};
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, add_up, &sums[i]);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
    printf("%.3f\n", sums[0] + sums[1] + sums[2]);
  }
  return sum & 63;
}
