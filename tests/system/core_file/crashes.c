// Dies in several ways, in functions and with variables that a debugger should find.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

struct point {
  int x, y;
  double weight;
};
struct point table[3] = {{1, 2, 0.5}, {3, 4, 0.25}, {50, 60, 0.125}};
const char* message = "all is lost";
static volatile char large[96 << 20];  // of which one page is touched
volatile char* touched = &large[50 << 20];

APART int reads(const int* from, int factor) {
  const int here = factor * 7;
  return *from + here;
}
APART int passes(int* from, double ratio) {
  struct point local = {11, 22, ratio};
  table[1] = local;
  return reads(from, 6) + (int)local.weight;
}
APART void illegal(void) {
#ifdef __riscv
  __asm__ volatile(".word 0");
#else
  __asm__ volatile("udf #0");
#endif
}
APART void aborts(int reason) {
  volatile int kept = reason;
  if (kept) abort();
}
APART int calls_nothing(int (*function)(int)) { return function(3) + 1; }

static pthread_barrier_t all_there;
static int pipe_ends[2];
APART void waits(int number) {
  volatile int mine = number * 100;
  char byte;
  if (read(pipe_ends[0], &byte, 1) == 1) mine = 0;  // nobody writes
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* worker(void* p) {
  pthread_barrier_wait(&all_there);
  waits((int)(long)p);
  return 0;
}
APART void spins(volatile int* until) {
  while (*until == 0) {
  }
}
static volatile int never;
static void* spinner(void* p) {
  (void)p;
  pthread_barrier_wait(&all_there);
  spins(&never);
  return 0;
}

static void dies_with_threads(void) {
  pthread_t threads[3];
  pthread_barrier_init(&all_there, 0, 4);
  if (pipe(pipe_ends) != 0) return;
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], 0, worker, (void*)(i + 1));
  pthread_create(&threads[2], 0, spinner, 0);
  pthread_barrier_wait(&all_there);
  for (volatile int i = 0; i < 100000; ++i) {
  }
  aborts(5);
}

static volatile double held = 2.5;

// Fills every register for floating point and vectors, and what is beside them, then dies.
static uint64_t values[64];
APART void dies_with_all_registers(void) {
  for (uint64_t i = 0; i < 64; ++i) values[i] = (i + 1) * 0x0123456789abcdefu;
#ifdef __riscv
#define LOAD(n) "fld f" #n ", 8*" #n "(%0)\n\t"
  const uint64_t state = 0x29, more = 0;  // round to zero; inexact and division by zero happened
#define STATE "fscsr %1\n\t.word 0"
#else
#define LOAD(n) "ldr q" #n ", [%0, 16*" #n "]\n\t"
  const uint64_t state = 0x00800000, more = 0x08000006;  // to minus infinity; QC, DZC, OFC
#define STATE "msr fpcr, %1\n\tmsr fpsr, %2\n\tudf #0"
#endif
#define LOAD5(n, a, b, c, d, e) LOAD(n##a) LOAD(n##b) LOAD(n##c) LOAD(n##d) LOAD(n##e)
#define LOAD10(n) LOAD5(n, 0, 1, 2, 3, 4) LOAD5(n, 5, 6, 7, 8, 9)
  __asm__ volatile(LOAD10() LOAD10(1) LOAD10(2) LOAD(30) LOAD(31) STATE ::"r"(values), "r"(state),
                   "r"(more)
                   : "memory");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  *touched = 42;
  if (strcmp(how, "null") == 0) return passes((int*)8, 1.5);
  if (strcmp(how, "illegal") == 0) illegal();
  if (strcmp(how, "abort") == 0) aborts(3);
  if (strcmp(how, "jump") == 0) return calls_nothing((int (*)(int))0x30);
  if (strcmp(how, "threads") == 0) dies_with_threads();
  if (strcmp(how, "deadlock") == 0) {
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
  }
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGTERM);
  if (strcmp(how, "registers") == 0) dies_with_all_registers();
  if (strcmp(how, "float") == 0) {
    register double kept = held * 3;
#ifdef __riscv
    __asm__ volatile("fmv.d fs3, %0\n\tli s4, 0x1234\n\t.word 0" ::"f"(kept) : "fs3", "s4");
#else
    __asm__ volatile("fmov d11, %d0\n\tmov x20, 0x1234\n\tudf #0" ::"w"(kept) : "d11", "x20");
#endif
  }
  return 0;
}
