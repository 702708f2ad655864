// Calls in all ways that C has. work(n) executes a known number of instructions, so the test knows
// what each stack has to have.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define APART __attribute__((noinline, noclone))
#define NO_TAIL_CALL __asm__ volatile("")

APART void work(long n) {
  for (long i = 0; i < n; ++i) __asm__ volatile("" : "+r"(i));
}

APART void first(void) {
  work(1000);
  NO_TAIL_CALL;
}
APART void second(void) {
  work(3000);
  NO_TAIL_CALL;
}

APART void recursive(int depth) {
  work(100);
  if (depth > 1) recursive(depth - 1);
  NO_TAIL_CALL;
}

// Each calls the other or itself, by bits.
APART void odd(unsigned bits, int depth);
APART void even(unsigned bits, int depth) {
  work(10);
  if (depth > 0) (bits & 1 ? odd : even)(bits >> 1, depth - 1);
  NO_TAIL_CALL;
}
APART void odd(unsigned bits, int depth) {
  work(20);
  if (depth > 0) (bits & 1 ? odd : even)(bits >> 1, depth - 1);
  NO_TAIL_CALL;
}

APART void tail_target(void) {
  work(500);
  NO_TAIL_CALL;
}
APART void tail_caller(void) {
  work(40);
  tail_target();
}
static void (*volatile target)(void) = tail_target;
APART void pointer_tail_caller(void) { target(); }

static jmp_buf place;
APART void thrower(void) {
  work(200);
  longjmp(place, 1);
}
APART void through(int depth) {
  if (depth > 0)
    through(depth - 1);
  else
    thrower();
  NO_TAIL_CALL;
}
APART void jumper(void) {
  for (volatile int i = 0; i < 3; ++i) {
    if (setjmp(place) == 0)
      through(1);
    else
      work(700);
  }
}
APART void after(void) {
  work(50);
  NO_TAIL_CALL;
}

static inline __attribute__((always_inline)) void inlined(void) {
  work(60);
  NO_TAIL_CALL;
}
APART void outside(void) { inlined(); }

APART void handler(int number) {
  (void)number;
  work(300);
  NO_TAIL_CALL;
}
APART void signalled(void) {
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  work(70);
  NO_TAIL_CALL;
}

static sigjmp_buf escape;
APART void escapes(int number) {
  (void)number;
  work(400);
  siglongjmp(escape, 1);
}
// Out of a handler with a stack of its own, which lies above or below the thread's.
APART void escaper(char* stack, size_t size) {
  const stack_t alternate = {.ss_sp = stack, .ss_size = size};
  sigaltstack(&alternate, 0);
  struct sigaction action = {.sa_handler = escapes, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &action, 0);
  if (sigsetjmp(escape, 1) == 0)
    raise(SIGUSR2);
  else
    work(80);
  after();
  NO_TAIL_CALL;
}

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
APART void sorter(void) {
  int numbers[50];
  for (int i = 0; i < 50; ++i) numbers[i] = i * 37 % 50;
  qsort(numbers, 50, sizeof(int), compare);
}

static pthread_barrier_t together;
APART void* worker(void* p) {
  first();
  if (p) second();
  pthread_barrier_wait(&together);  // each on a core of its own
  return 0;
}

static ucontext_t outer_context, inner_context;
APART void coroutine(void) {
  for (int i = 0; i < 3; ++i) {
    work(30);
    swapcontext(&inner_context, &outer_context);
  }
}
APART void switcher(void) {
  static char stack[16384];
  getcontext(&inner_context);
  inner_context.uc_stack.ss_sp = stack;
  inner_context.uc_stack.ss_size = sizeof stack;
  makecontext(&inner_context, coroutine, 0);
  for (int i = 0; i < 3; ++i) swapcontext(&outer_context, &inner_context);
}

static char low_stack[32768];

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "deep") == 0) {
    recursive(1000);
    for (unsigned bits = 0; bits < 64; ++bits) even(bits, 500);
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "switch") == 0) {
    switcher();
    return 0;
  }
  first();
  second();
  recursive(5);
  even(2, 3);
  tail_caller();
  pointer_tail_caller();
  jumper();
  after();
  outside();
  signalled();
  after();
  escaper(low_stack, sizeof low_stack);
  char high_stack[32768];
  escaper(high_stack, sizeof high_stack);
  after();
  sorter();
  if (argc > 1 && strcmp(argv[1], "threads") == 0) {
    pthread_t threads[3];
    pthread_barrier_init(&together, 0, 3);
    for (long i = 0; i < 3; ++i) pthread_create(&threads[i], 0, worker, (void*)(i & 1));
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  }
  return 0;
}
