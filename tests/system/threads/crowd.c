// Hundreds of threads on few cores; the first argument chooses, the second is their number.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { kMost = 2048 };
static pthread_t all[kMost];
static int n;
static pthread_attr_t small;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int fds[2];
static atomic_int ready, cleaned, hits, ended;

static void check(int is_right, const char* what) {
  if (is_right) return;
  printf("wrong: %s\n", what);
  exit(1);
}
static void start(void* (*f)(void*)) {
  for (intptr_t i = 0; i < n; ++i) check(!pthread_create(&all[i], &small, f, (void*)i), "create");
}
static void join(void) {
  for (int i = 0; i < n; ++i) check(!pthread_join(all[i], NULL), "join");
}
static struct timespec in_ms(clockid_t clock, long ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += ms * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000, t.tv_nsec %= 1000000000;
  return t;
}

// --- cancelled wherever they are
static void clean(void* argument) { cleaned += (int)(intptr_t)argument; }
static void unlock_and_clean(void* argument) {
  pthread_mutex_unlock(&mutex);
  clean(argument);
}
static void* be_cancelled(void* number) {
  const int kind = (int)(intptr_t)number % 6;
  char c;
  ++ready;
  if (kind == 0) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock_and_clean, (void*)1);
    for (;;) pthread_cond_wait(&changed, &mutex);
    pthread_cleanup_pop(0);
  }
  pthread_cleanup_push(clean, (void*)1);
  if (kind == 1) check(read(fds[0], &c, 1) == 1, "read");
  if (kind == 2)
    for (;;) pause();
  if (kind == 3) sem_wait(&semaphore);
  if (kind == 4)
    for (;;) sleep(100);
  for (;;) pthread_testcancel();
  pthread_cleanup_pop(0);
  return NULL;
}
static void cancel(int waits) {
  check(!pipe(fds) && !sem_init(&semaphore, 0, 0), "pipe");
  start(be_cancelled);
  if (waits)
    while (ready != n) sched_yield();
  for (int i = 0; i < n; ++i) check(!pthread_cancel(all[i]), "cancel");
  int cancelled = 0;
  for (int i = 0; i < n; ++i) {
    void* result;
    check(!pthread_join(all[i], &result), "join");
    cancelled += result == PTHREAD_CANCELED;
  }
  const int is_clean = !waits || cleaned == n;
  printf("cancel: %d of %d, %s\n", cancelled, n, is_clean ? "cleaned" : "not cleaned");
}

// --- signals
static _Thread_local volatile sig_atomic_t hit;
static void on_signal(int signal) {
  (void)signal;
  hit = 1;
  ++hits;
}
static void* until_hit(void* number) {
  sigset_t none, usr;
  sigemptyset(&none);
  sigemptyset(&usr);
  sigaddset(&usr, SIGUSR1);
  if ((intptr_t)number % 2) pthread_sigmask(SIG_BLOCK, &usr, NULL);
  ++ready;
  if ((intptr_t)number % 2)
    while (!hit) sigsuspend(&none);
  else
    while (!hit) sched_yield();
  return NULL;
}
static void kills(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  start(until_hit);
  while (ready != n) sched_yield();
  for (int i = 0; i < n; ++i) check(!pthread_kill(all[i], SIGUSR1), "kill");
  join();
  printf("kill: %d\n", hits);
}

// --- time limits
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;  // by the first thread
static void* time_limits(void* number) {
  const int kind = (int)(intptr_t)number % 4;
  struct timespec at = in_ms(CLOCK_REALTIME, 20 + (intptr_t)number % 7);
  if (kind == 0) check(sem_timedwait(&semaphore, &at) == -1 && errno == ETIMEDOUT, "semaphore");
  if (kind == 1) {
    pthread_mutex_lock(&mutex);
    int error = 0;
    while (error == 0) error = pthread_cond_timedwait(&changed, &mutex, &at);
    check(error == ETIMEDOUT, "condition");
    pthread_mutex_unlock(&mutex);
  }
  if (kind == 2) check(pthread_mutex_timedlock(&taken, &at) == ETIMEDOUT, "mutex");
  if (kind == 3) usleep(20000);
  ++ended;
  return NULL;
}
// --- threads that nobody joins
static void* end_alone(void* number) {
  if ((intptr_t)number % 3 == 0) sched_yield();
  if ((intptr_t)number % 3 == 1) usleep(100);
  if (++ended == n) sem_post(&semaphore);
  return NULL;
}
static void detached(void) {
  sem_init(&semaphore, 0, 0);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  start(end_alone);
  while (sem_wait(&semaphore)) {
  }
  printf("detached: %d\n", ended);
}

// --- a ring of mailboxes: a word goes round through all threads
static sem_t boxes[kMost];
static long word;
static void* pass_on(void* number) {
  const intptr_t i = (intptr_t)number;
  for (int round = 0; round < 3; ++round) {
    sem_wait(&boxes[i]);
    word = word * 31 % 1000003 + i;
    sem_post(&boxes[(i + 1) % n]);
  }
  return NULL;
}

// --- many coroutines on few threads, which hand them over and interrupt each other
enum { kWorkers = 12, kStack = 32768 };
struct task {
  ucontext_t context;
  struct task* next;
  int left;
};
static struct task* queue_head;
static _Thread_local struct task* running;
static _Thread_local ucontext_t own;
static atomic_int unfinished;
static long turns;
// A task may go on in another thread.
static __attribute__((noinline)) ucontext_t* scheduler(void) {
  __asm__ volatile("");
  return &own;
}
static __attribute__((noinline)) struct task* me(void) {
  __asm__ volatile("");
  return running;
}
static void body(void) {
  while (me()->left-- > 0) {
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    swapcontext(&me()->context, scheduler());
  }
  --unfinished;
  swapcontext(&me()->context, scheduler());
}
static void put(struct task* t) {
  t->next = queue_head;
  queue_head = t;
}
static void* work(void* unused) {
  (void)unused;
  while (unfinished > 0) {
    pthread_mutex_lock(&mutex);
    struct task* const t = queue_head;
    if (t) queue_head = t->next;
    pthread_mutex_unlock(&mutex);
    if (!t) {
      sched_yield();
      continue;
    }
    running = t;
    swapcontext(&own, &t->context);
    pthread_mutex_lock(&mutex);
    if (t->left >= 0) put(t);
    pthread_mutex_unlock(&mutex);
    pthread_kill(all[turns % kWorkers], SIGURG);
  }
  return NULL;
}
static void on_urgent(int signal) { (void)signal; }
static void tasks(void) {
  struct sigaction action = {.sa_handler = on_urgent, .sa_flags = SA_RESTART};
  sigaction(SIGURG, &action, NULL);
  struct task* const list = calloc((size_t)n, sizeof *list);
  char* const stacks = malloc((size_t)n * kStack);
  for (int i = 0; i < n; ++i) {
    getcontext(&list[i].context);
    list[i].context.uc_stack.ss_sp = stacks + (size_t)i * kStack;
    list[i].context.uc_stack.ss_size = kStack;
    list[i].left = 5;
    makecontext(&list[i].context, body, 0);
    put(&list[i]);
  }
  unfinished = n;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kWorkers; ++i) check(!pthread_create(&all[i], NULL, work, NULL), "create");
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kWorkers; ++i) pthread_join(all[i], NULL);
  printf("tasks: %ld turns\n", turns);
}

// The first works, the second makes system calls all the time, the others spin until the first is
// done.
static void __attribute__((noinline)) spin_deep(void) {
  while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
  }
}
static void __attribute__((noinline)) spin(void) {
  spin_deep();
  atomic_fetch_add(&cleaned, 1);
}
static void* work_call_or_spin(void* number) {
  if (number == (void*)0) {
    for (volatile int i = 0; i < 100000; ++i) {
    }
    ended = 1;
  } else if (number == (void*)1) {
    while (!ended) sched_yield();
  } else {
    spin();
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* const what = argv[1];
  n = argc > 2 ? atoi(argv[2]) : 100;
  check(n <= kMost, "number");
  pthread_attr_init(&small);
  check(!pthread_attr_setstacksize(&small, 131072), "stack size");
  if (!strcmp(what, "cancel")) {
    cancel(1);
  } else if (!strcmp(what, "cancel_early")) {
    cancel(0);
  } else if (!strcmp(what, "kill")) {
    kills();
  } else if (!strcmp(what, "limits")) {
    sem_init(&semaphore, 0, 0);
    pthread_mutex_lock(&taken);
    start(time_limits), join();
    printf("limits: %d\n", ended);
  } else if (!strcmp(what, "detached")) {
    detached();
  } else if (!strcmp(what, "ring")) {
    for (int i = 0; i < n; ++i) sem_init(&boxes[i], 0, i == 0);
    start(pass_on), join();
    printf("ring: %ld\n", word);
  } else if (!strcmp(what, "callers")) {
    start(work_call_or_spin), join();
    printf("callers: %d spun\n", cleaned);
  } else if (!strcmp(what, "tasks")) {
    tasks();
  }
  return 0;
}
