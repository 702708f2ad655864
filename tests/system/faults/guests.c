// Faults, aborts and deadlocks, each with call stacks that are known; the first argument chooses. A
// comment "at NAME" marks a line that a report must name.
#include <alloca.h>
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __riscv
#define UNDEFINED "unimp"
#else
#define UNDEFINED "udf #0"
#endif

static volatile int sink;
static int* volatile nothing;
static void (*volatile no_code)(void) = (void (*)(void))0x10;
static int (*volatile no_tail_call)(int);

// A load through a null pointer, under a function that is inlined, one with alloca, and recursion.
static inline __attribute__((always_inline)) int inner(int* p) {
  for (int i = 0; i < sink; ++i) sink = 0;
  return p[6] * sink;  // at inner
}
NOINLINE int leaf(int* p) {
  return inner(p) + 1;  // at leaf
}
NOINLINE int with_alloca(int n) {
  volatile char* const block = alloca((size_t)n);
  block[0] = 1;
  const int r = leaf(nothing);  // at with_alloca
  return r + block[0];
}
NOINLINE int recurse(int n) {
  const int r = n == 0 ? with_alloca(100)  // at recurse_end
                       : recurse(n - 1);   // at recurse
  return r + sink;
}

NOINLINE int tail(int n) { return with_alloca(n); }
NOINLINE int calls_tail(int n) {
  const int r = tail(n);  // at calls_tail
  return r + sink;
}

NOINLINE void call_nothing(void) {
  no_code();  // at call_nothing
  sink = 1;
}
NOINLINE size_t measure(const char* text) {
  const size_t n = strlen(text);  // at measure
  return n + (size_t)sink;
}
NOINLINE void give_up(void) {
  abort();  // at give_up
}
NOINLINE void insist(int truth) {
  assert(truth && "it holds");  // at insist
  sink = 1;
}
static NOINLINE void fill(char* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = 'A';
}
__attribute__((noinline, optimize("stack-protector-all"))) int smash(int n) {
  char small[8];
  fill(small, n);
  return small[3];  // at smash
}
// Without a guard: the return address itself is overwritten.
__attribute__((noinline, optimize("no-stack-protector"))) int overwrite(int n) {
  char small[8];
  fill(small, n);
  return small[sink];
}
NOINLINE int overwritten(int n) {
  const int r = overwrite(n);
  return r + sink;
}
NOINLINE int endless(int n) {
  volatile char block[512];
  block[n & 255] = (char)n;
  return endless(n + 1) + block[n & 127];  // at endless
}

static NOINLINE void handler(int number) {
  sink = number;
  sink = leaf(nothing);  // at handler
}
NOINLINE void raises(void) {
  raise(SIGUSR1);  // at raises
  sink = 2;
}
NOINLINE void divides(void) {
  __asm__ volatile(UNDEFINED);  // at divides
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left_locked = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
NOINLINE void lock_in_turn(pthread_mutex_t* one, pthread_mutex_t* two) {
  pthread_mutex_lock(one);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(two);  // at lock_in_turn
  sink = 1;
}
static void* other_order(void* argument) {
  lock_in_turn(&second, &first);  // at other_order
  return argument;
}
static void* lock_first(void* argument) {
  pthread_mutex_lock(&first);
  return argument;
}
static void* spin(void* argument) {
  while (!sink) {
  }
  return argument;
}
static void* leave_locked(void* argument) {
  pthread_mutex_lock(&left_locked);
  return argument;
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  pthread_t thread;
  if (!strcmp(what, "load")) return recurse(3) + sink;  // at main_load
  if (!strcmp(what, "tail")) return calls_tail(100) + sink;
  if (!strcmp(what, "call")) call_nothing();  // at main_call
  if (!strcmp(what, "strlen")) return (int)measure((char*)nothing) + sink;
  if (!strcmp(what, "abort")) give_up();  // at main_abort
  if (!strcmp(what, "assert")) insist(argc == 0);  // at main_assert
  if (!strcmp(what, "smash")) return smash(64) + sink;
  if (!strcmp(what, "overwrite")) return overwritten(128) + sink;
  if (!strcmp(what, "endless")) return endless(0) + sink;
  if (!strcmp(what, "handler")) {
    signal(SIGUSR1, handler);
    raises();  // at main_handler
  }
  if (!strcmp(what, "fault_handler")) {
    signal(SIGILL, handler);
    divides();  // at main_fault_handler
  }
  if (!strcmp(what, "locks")) {
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, other_order, NULL);
    lock_in_turn(&first, &second);  // at main_locks
  }
  if (!strcmp(what, "left_locked")) {
    pthread_create(&thread, NULL, leave_locked, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&left_locked);  // at main_left_locked
  }
  if (!strcmp(what, "again")) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&first);
  }
  if (!strcmp(what, "join")) {
    pthread_mutex_lock(&first);
    pthread_create(&thread, NULL, lock_first, NULL);
    pthread_join(thread, NULL);  // at main_join
  }
  if (!strcmp(what, "spins")) {
    pthread_create(&thread, NULL, spin, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}
