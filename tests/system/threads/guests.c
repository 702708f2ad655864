// What threads of one process can come to; the first argument chooses.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static int fds[2];

static void* wait_for_ever(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&other);
  return argument;
}
static void* crash(void* argument) {
  *(volatile int*)16 = 1;
  return argument;
}
static void* spin(void* argument) {
  while (!stop) {
  }
  return argument;
}
static void* read_pipe(void* argument) {
  char c;
  return (void*)(intptr_t)read(fds[0], &c, 1) + (argument != 0);
}
static void* add(void* argument) {
  while (!stop) usleep(1000);
  for (int i = 0; i < 100; ++i) __atomic_fetch_add((int*)argument, 1, __ATOMIC_SEQ_CST);
  return NULL;
}
static void make_robust(pthread_mutex_t* m, int protocol) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutex_init(m, &attributes);
}
static void* lock_and_die(void* argument) {
  return (void*)(intptr_t)pthread_mutex_lock(argument);
}
static void* lock_and_die_later(void* argument) {
  pthread_mutex_lock(argument);
  stop = 1;
  usleep(50000);
  return NULL;
}
static void owner_dies(int protocol) {
  pthread_mutex_t m;
  pthread_t thread;
  make_robust(&m, protocol);
  pthread_create(&thread, NULL, lock_and_die, &m);
  pthread_join(thread, NULL);
  const int dead = pthread_mutex_lock(&m) == EOWNERDEAD;
  const int made_good = pthread_mutex_consistent(&m), unlocked = pthread_mutex_unlock(&m);
  stop = 0;
  pthread_create(&thread, NULL, lock_and_die_later, &m);
  while (!stop) usleep(1000);
  const int dead_while_waiting = pthread_mutex_lock(&m) == EOWNERDEAD;
  pthread_mutex_unlock(&m);  // without making it good
  const int lost = pthread_mutex_lock(&m) == ENOTRECOVERABLE;
  pthread_join(thread, NULL);
  printf("owner died: %d, consistent %d, unlock %d, again %d, lost %d\n", dead, made_good, unlocked,
         dead_while_waiting, lost);
}
static void ring(int signal) {
  printf("signal %d\n", signal);
  stop = 1;
}

// A page to which threads store, and which the first one closes and opens.
enum { kPage = 4096 };
static uint8_t* page;
static _Atomic int faults;
static void wait_until_open(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if ((uintptr_t)info->si_addr - (uintptr_t)page >= 16) _exit(3);
  ++faults;  // and the store is tried again
}
static void* store_for_long(void* which) {
  volatile uint64_t* const at = (uint64_t*)page + (uintptr_t)which;
  for (uint64_t n = 1; !stop; ++n) {
    *at = n;
    if (*at != n) _exit(4);
  }
  return NULL;
}
static void close_and_open(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = wait_until_open;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  page = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t all[2];
  for (uintptr_t i = 0; i < 2; ++i) pthread_create(&all[i], NULL, store_for_long, (void*)i);
  for (int round = 0; round < 20; ++round) {
    const int before = faults;
    mprotect(page, kPage, round % 2 ? PROT_READ : PROT_NONE);
    while (faults == before) {
    }
    mprotect(page, kPage, PROT_READ | PROT_WRITE);
    for (volatile int i = 0; i < 20000; ++i) {
    }
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(all[i], NULL);
  printf("%s\n", faults >= 20 ? "20 times closed" : "too few faults");
}

static pthread_barrier_t all_are_there;
static void* see_cpu(void* highest) {
  const int cpu = sched_getcpu();
  pthread_mutex_lock(&mutex);
  if (cpu > *(int*)highest) *(int*)highest = cpu;
  pthread_mutex_unlock(&mutex);
  pthread_barrier_wait(&all_are_there);
  return NULL;
}
// Ten threads at once, however many processors there are.
static void count_processors(void) {
  pthread_t all[10];
  int highest = 0;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  pthread_barrier_init(&all_are_there, NULL, 10);
  for (int i = 0; i < 10; ++i)
    if (pthread_create(&all[i], NULL, see_cpu, &highest)) exit(1);
  for (int i = 0; i < 10; ++i) pthread_join(all[i], NULL);
  printf("%ld processors, %d may be used, %d is the highest\n", sysconf(_SC_NPROCESSORS_ONLN),
         CPU_COUNT(&set), highest);
}

// A signal comes to a thread that is about to wait: in the same slice, before its call.
static volatile uint32_t begun, let_go;
static volatile int64_t waiter;
static void open_word(int number) {
  (void)number;
  let_go = 1;
}
static void* wait_for_signal(void* argument) {
  waiter = syscall(SYS_gettid);
  for (uint32_t round = 1; round <= 200; ++round) {
    let_go = 0;
    begun = round;
    for (volatile uint32_t i = 0; i < round * 37 % 2000; ++i) {
    }
    while (!let_go) syscall(SYS_futex, &let_go, 0 /* FUTEX_WAIT */, 0, NULL);
  }
  return argument;
}
static void signal_who_waits(void) {
  pthread_t thread;
  const struct sigaction action = {.sa_handler = open_word};
  sigaction(SIGUSR1, &action, NULL);
  pthread_create(&thread, NULL, wait_for_signal, NULL);
  for (uint32_t round = 1; round <= 200; ++round) {
    while (begun != round) {
    }
    syscall(SYS_tgkill, getpid(), waiter, SIGUSR1);
  }
  pthread_join(thread, NULL);
  puts("200 signals");
}

int main(int argc, char** argv) {
  (void)argc;
  pthread_t t[200];
  const char* what = argv[1];
  if (!strcmp(what, "many")) {
    int n = 0, sum = 0, error = 0;
    while (n < 200 && (error = pthread_create(&t[n], NULL, add, &sum)) == 0) ++n;
    stop = 1;
    for (int i = 0; i < n; ++i) pthread_join(t[i], NULL);
    printf("%d threads, sum %d, %s\n", n, sum, error == EAGAIN ? "EAGAIN" : "all");
  } else if (!strcmp(what, "deadlock")) {
    pthread_mutex_lock(&other);
    pthread_create(&t[0], NULL, wait_for_ever, NULL);
    pthread_join(t[0], NULL);
  } else if (!strcmp(what, "pipe")) {
    if (pipe(fds)) return 1;
    pthread_create(&t[0], NULL, read_pipe, NULL);
    pthread_join(t[0], NULL);
  } else if (!strcmp(what, "crash")) {
    pthread_create(&t[0], NULL, spin, NULL);
    pthread_create(&t[1], NULL, crash, NULL);
    pthread_join(t[0], NULL);
  } else if (!strcmp(what, "exit")) {
    pthread_create(&t[0], NULL, spin, NULL);
    exit(5);
  } else if (!strcmp(what, "robust")) {
    owner_dies(PTHREAD_PRIO_NONE);
    owner_dies(PTHREAD_PRIO_INHERIT);
  } else if (!strcmp(what, "alarm")) {
    signal(SIGALRM, ring);
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    spin(NULL);
  } else if (!strcmp(what, "signal")) {
    signal_who_waits();
  } else if (!strcmp(what, "close")) {
    close_and_open();
  } else if (!strcmp(what, "count")) {
    count_processors();
  }
  return 0;
}
