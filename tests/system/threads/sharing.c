// More threads than cores; the first argument chooses, the second is the number of threads.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 4096 };
static pthread_t all[kMost];
static int n;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long sum;
static _Thread_local long own;

static void check(int is_right, const char* what) {
  if (is_right) return;
  printf("wrong: %s\n", what);
  exit(1);
}
static void start(void* (*f)(void*)) {
  for (intptr_t i = 0; i < n; ++i) check(!pthread_create(&all[i], NULL, f, (void*)i), "create");
}
static void join(void) {
  for (int i = 0; i < n; ++i) check(!pthread_join(all[i], NULL), "join");
}

static void* add_locked(void* number) {
  for (int i = 0; i < 200; ++i) {
    pthread_mutex_lock(&mutex);
    sum += (intptr_t)number;
    pthread_mutex_unlock(&mutex);
    ++own;
  }
  check(own == 200, "a thread's own variable");
  return NULL;
}

// Threads take turns in the order of their numbers.
static long turn;
static void* in_turn(void* number) {
  for (long round = 0; round < 5; ++round) {
    pthread_mutex_lock(&mutex);
    while (turn != round * n + (intptr_t)number) pthread_cond_wait(&changed, &mutex);
    sum = sum * 31 % 1000003 + (intptr_t)number;
    ++turn;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static atomic_long phase_sum[8];
static void* in_phases(void* number) {
  for (int phase = 0; phase < 8; ++phase) {
    phase_sum[phase] += (intptr_t)number;
    pthread_barrier_wait(&barrier);
    check(phase_sum[phase] == (long)n * (n - 1) / 2, "a barrier");
  }
  return NULL;
}

// Each busy-waits for the next one, and the last for the first thread.
static atomic_int flags[kMost + 1];
static void* spin(void* number) {
  const intptr_t i = (intptr_t)number;
  while (!flags[i + 1]) {
  }
  flags[i] = 1;
  return NULL;
}
static void* spin_politely(void* number) {
  const intptr_t i = (intptr_t)number;
  while (!flags[i + 1]) sched_yield();
  flags[i] = 1;
  return NULL;
}
// Floating point and all vector registers are a thread's own.
static void* compute(void* number) {
  double x[8], y = 0;
  for (int i = 0; i < 8; ++i) x[i] = (intptr_t)number + i;
  for (int i = 0; i < 40000; ++i)
    for (int k = 0; k < 8; ++k) x[k] = x[k] * 0.999 + k;
  for (int i = 0; i < 8; ++i) y += x[i];
  pthread_mutex_lock(&mutex);
  sum += (long)(y * 1e6);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static int fds[2];
static void* produce(void* number) {
  for (int i = 0; i < 500; ++i) {
    const int item = (int)(intptr_t)number * 500 + i;
    check(write(fds[1], &item, sizeof item) == sizeof item, "write");
  }
  return NULL;
}
static void* consume(void* number) {
  int item;
  (void)number;
  while (read(fds[0], &item, sizeof item) == sizeof item) {
    pthread_mutex_lock(&mutex);
    sum += item;
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}
static void pipes(void) {
  check(!pipe(fds), "pipe");
  for (intptr_t i = 0; i < n; ++i)
    check(!pthread_create(&all[i], NULL, i % 2 ? produce : consume, (void*)i), "create");
  for (int i = 1; i < n; i += 2) pthread_join(all[i], NULL);
  close(fds[1]);
  for (int i = 0; i < n; i += 2) pthread_join(all[i], NULL);
}

static void* sleep_a_little(void* number) {
  const struct timespec time = {.tv_nsec = 1000000 * (1 + (intptr_t)number % 5)};
  nanosleep(&time, NULL);
  pthread_mutex_lock(&mutex);
  sum += (intptr_t)number;
  pthread_mutex_unlock(&mutex);
  return NULL;
}
static void* grandchild(void* number) { return (void*)((intptr_t)number * 2); }
static void* start_another(void* number) {
  pthread_t child;
  void* result;
  check(!pthread_create(&child, NULL, grandchild, number), "create");
  pthread_join(child, &result);
  __atomic_fetch_add(&sum, (intptr_t)result, __ATOMIC_SEQ_CST);
  return NULL;
}

// Signals to threads that run, sleep in calls, or wait for a core.
static atomic_int hits, ready;
static _Thread_local volatile int hit;
static void on_signal(int signal) {
  (void)signal;
  hit = 1;
  ++hits;
}
static void* spin_until_hit(void* number) {
  (void)number;
  ++ready;
  while (!hit) {
  }
  return NULL;
}
static void* pause_until_hit(void* number) {
  sigset_t none, usr;
  (void)number;
  sigemptyset(&none);
  sigemptyset(&usr);
  sigaddset(&usr, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr, NULL);
  ++ready;
  while (!hit) sigsuspend(&none);
  return NULL;
}
static void* read_until_hit(void* number) {
  char c;
  (void)number;
  ++ready;
  while (!hit) check(read(fds[0], &c, 1) == -1 && errno == EINTR, "an interrupted read");
  return NULL;
}
static void signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  check(!pipe(fds), "pipe");
  void* (*const kinds[])(void*) = {spin_until_hit, pause_until_hit, read_until_hit};
  for (int i = 0; i < n; ++i) pthread_create(&all[i], NULL, kinds[i % 3], NULL);
  while (ready != n) sched_yield();
  usleep(5000);
  for (int i = n - 1; i >= 0; --i) check(!pthread_kill(all[i], SIGUSR1), "pthread_kill");
  for (int i = 0; i < n; ++i) {
    // One that had not yet begun to read has missed it.
    struct timespec soon;
    do {
      pthread_kill(all[i], SIGUSR1);
      clock_gettime(CLOCK_REALTIME, &soon);
      soon.tv_nsec += 20000000;
      if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, ++soon.tv_sec;
    } while (pthread_timedjoin_np(all[i], NULL, &soon));
  }
  sum = hits >= n;
}

// A signal of the process is the first thread's, if that takes it.
static pthread_t first;
static void on_alarm(int number) {
  (void)number;
  sum += pthread_equal(pthread_self(), first);
}
static void wait_for_alarm(void) {
  first = pthread_self();
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval soon = {{0, 20000}, {0, 20000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  while (sum == 0) pause();
  sum = 1;
}

// A mask for the time of a call is gone when the call has come to its time limit.
static void* wait_with_a_mask(void* unused) {
  (void)unused;
  sigset_t none, one;
  sigemptyset(&none);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  for (int i = 0; i < 40; ++i) {
    const struct timespec limit = {.tv_nsec = 1000000};
    own = 0;
    check(ppoll(NULL, 0, &limit, &none) != 0 || own == 0, "a signal that is blocked");
  }
  ++ready;
  return NULL;
}
static void on_own_signal(int number) {
  (void)number;
  ++own;
}
static void masks(void) {
  struct sigaction action = {.sa_handler = on_own_signal};
  sigaction(SIGUSR1, &action, NULL);
  start(wait_with_a_mask);
  while (ready != n)
    for (int i = 0; i < n; ++i) pthread_kill(all[i], SIGUSR1);
  join();
}

static void* lock_and_end(void* lock) { return (void*)(intptr_t)pthread_mutex_lock(lock); }
static void robust(void) {
  pthread_mutexattr_t attributes;
  static pthread_mutex_t m[kMost];
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (int i = 0; i < n; ++i) {
    pthread_mutexattr_setprotocol(&attributes, i % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
    pthread_mutex_init(&m[i], &attributes);
    pthread_create(&all[i], NULL, lock_and_end, &m[i]);
  }
  for (int i = 0; i < n; ++i) {
    int result;
    while ((result = pthread_mutex_lock(&m[i])) == 0) {
      pthread_mutex_unlock(&m[i]);
      sched_yield();
    }
    sum += result == EOWNERDEAD;
  }
  join();
}

static pthread_mutex_t inherits;
static void* add_with_inheritance(void* number) {
  for (int i = 0; i < 50; ++i) {
    pthread_mutex_lock(&inherits);
    sum += (intptr_t)number;
    if (i % 10 == 0) sched_yield();
    pthread_mutex_unlock(&inherits);
  }
  return NULL;
}
static sem_t semaphore;
static void* wait_and_post(void* number) {
  sem_wait(&semaphore);
  sum += (intptr_t)number;
  sem_post(&semaphore);
  return NULL;
}
// Two processes of n threads each, with a barrier and a mutex that all of them share.
static struct {
  pthread_barrier_t barrier;
  pthread_mutex_t mutex;
  long sum;
} * common;
static void* add_in_common(void* number) {
  for (int round = 0; round < 5; ++round) {
    pthread_mutex_lock(&common->mutex);
    common->sum += (intptr_t)number;
    pthread_mutex_unlock(&common->mutex);
    pthread_barrier_wait(&common->barrier);
  }
  return NULL;
}
static void processes(void) {
  pthread_barrierattr_t of_barrier;
  pthread_mutexattr_t of_mutex;
  common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_init(&of_barrier);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&common->barrier, &of_barrier, 2 * n);
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&common->mutex, &of_mutex);
  const pid_t child = fork();
  start(add_in_common), join();
  if (child == 0) _exit(0);
  check(waitpid(child, NULL, 0) == child, "waitpid");
  sum = common->sum;
}

// The set's second semaphore lets threads go on one by one.
static int set;
static void* take_semaphore(void* number) {
  struct sembuf take = {1, -1, 0}, give = {1, 1, 0}, arrive = {0, 1, 0};
  check(!semop(set, &arrive, 1) && !semop(set, &take, 1), "semop");
  sum += (intptr_t)number;
  check(!semop(set, &give, 1), "semop");
  return NULL;
}
static void system_v(void) {
  struct sembuf all_arrived = {0, (short)-n, 0}, give = {1, 1, 0};
  set = semget(IPC_PRIVATE, 2, 0600);
  start(take_semaphore);
  check(!semop(set, &all_arrived, 1), "semop");
  usleep(20000);
  const int waiting = semctl(set, 1, GETNCNT);
  check(!semop(set, &give, 1), "semop");
  join();
  check(!semctl(set, 0, IPC_RMID), "semctl");
  printf("%d wait\n", waiting);
}

// A process that a thread makes, while others wait for a core, is alone.
static void* make_process(void* number) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) _exit((int)(intptr_t)number);
  check(waitpid(child, &status, 0) == child, "waitpid");
  __atomic_fetch_add(&sum, WEXITSTATUS(status), __ATOMIC_SEQ_CST);
  return NULL;
}
static void* spin_for_ever(void* number) {
  (void)number;
  for (;;) {
  }
}
static void* lock_twice(void* number) {
  (void)number;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  return NULL;
}
// A thread that has no core holds a lock, and another one waits for it.
static void* hold_for_ever(void* number) {
  (void)number;
  pthread_mutex_lock(&mutex);
  ++ready;
  for (;;) pause();
}
static void* wait_for_lock(void* number) {
  (void)number;
  pthread_mutex_lock(&mutex);
  return NULL;
}
static void* main_left(void* first) {
  pthread_join(*(pthread_t*)first, NULL);
  printf("the first thread has left\n");
  exit(7);
}

int main(int argc, char** argv) {
  const char* what = argv[1];
  n = argc > 2 ? atoi(argv[2]) : 32;
  if (!strcmp(what, "mutex")) {
    start(add_locked), join();
  } else if (!strcmp(what, "condition")) {
    start(in_turn), join();
  } else if (!strcmp(what, "barrier")) {
    pthread_barrier_init(&barrier, NULL, n);
    start(in_phases), join();
  } else if (!strcmp(what, "spin")) {
    start(spin);
    flags[n] = 1;
    while (!flags[0]) {
    }
    join();
  } else if (!strcmp(what, "yield")) {
    start(spin_politely);
    flags[n] = 1;
    join();
  } else if (!strcmp(what, "compute")) {
    start(compute), join();
  } else if (!strcmp(what, "pipe")) {
    pipes();
  } else if (!strcmp(what, "sleep")) {
    start(sleep_a_little), join();
  } else if (!strcmp(what, "waves")) {
    for (int wave = 0; wave < 10; ++wave) start(start_another), join();
  } else if (!strcmp(what, "signals")) {
    signals();
  } else if (!strcmp(what, "alarm")) {
    start(spin_for_ever);
    wait_for_alarm();
  } else if (!strcmp(what, "masks")) {
    masks();
  } else if (!strcmp(what, "robust")) {
    robust();
  } else if (!strcmp(what, "inherit")) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inherits, &attributes);
    start(add_with_inheritance), join();
  } else if (!strcmp(what, "semaphore")) {
    sem_init(&semaphore, 0, 0);
    start(wait_and_post);
    sem_post(&semaphore);
    join();
  } else if (!strcmp(what, "processes")) {
    processes();
  } else if (!strcmp(what, "system_v")) {
    system_v();
  } else if (!strcmp(what, "fork")) {
    start(make_process), join();
  } else if (!strcmp(what, "exit")) {
    start(spin_for_ever);
    exit(5);
  } else if (!strcmp(what, "deadlock")) {
    start(lock_twice), join();
  } else if (!strcmp(what, "held")) {
    pthread_create(&all[0], NULL, hold_for_ever, NULL);
    while (!ready) sched_yield();
    pthread_create(&all[1], NULL, wait_for_lock, NULL);
    pthread_join(all[0], NULL);
  } else if (!strcmp(what, "for_ever")) {
    start(spin_for_ever), join();
  } else if (!strcmp(what, "leave")) {
    first = pthread_self();
    start(sleep_a_little);
    pthread_t last;
    pthread_create(&last, NULL, main_left, &first);
    pthread_exit(NULL);
  }
  printf("%s: %ld\n", what, sum);
  return 0;
}
