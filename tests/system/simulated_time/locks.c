// Threads of a C library that exclude each other, or wait for each other: KIND THREADS ROUNDS HELD
// OUTSIDE, the last two in rounds of spend().
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 16 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_there = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static struct { uint32_t next, serving; } ticket;
static uint32_t flag;
static pthread_rwlock_t readers_and_writers = PTHREAD_RWLOCK_INITIALIZER;
static sem_t units, used;
static sem_t* named;
static char name[64];
static pthread_barrier_t meeting;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct timespec far_off = {.tv_sec = 1L << 32, .tv_nsec = 0};
static volatile int has_ended;
static long rounds, held, outside, counter;
static int kind;
static volatile int goods;

// Three instructions a round.
static __attribute__((noinline)) void spend(long n) {
  for (; n > 0; --n) __asm__ volatile(SPEND : : : SCRATCH);
}

static void take(void) {
  uint32_t mine;
  switch (kind) {
    case 'm':
      pthread_mutex_lock(&mutex);
      return;
    case 's':
      pthread_spin_lock(&spin);
      return;
    case 't':
      mine = __atomic_fetch_add(&ticket.next, 1, __ATOMIC_RELAXED);
      while (__atomic_load_n(&ticket.serving, __ATOMIC_ACQUIRE) != mine) {
      }
      return;
    case 'w':
      pthread_rwlock_wrlock(&readers_and_writers);
      return;
    case 'r':
      pthread_rwlock_rdlock(&readers_and_writers);
      return;
    case 'a':
      if (pthread_mutex_trylock(&mutex) != 0) pthread_mutex_lock(&mutex);
      return;
    case 'l':
      pthread_mutex_timedlock(&mutex, &far_off);
      return;
    case 'u':
    case 'p':
      sem_wait(&units);
      return;
    case 'n':
    case 'N':
    case 'k':
    case 'O':
      sem_wait(named);
      return;
    case 'U':
      sem_timedwait(&units, &far_off);
      return;
    default:
      while (__atomic_exchange_n(&flag, 1, __ATOMIC_ACQUIRE) != 0) {
      }
  }
}
static void give(void) {
  switch (kind) {
    case 'm':
    case 'a':
    case 'l':
      pthread_mutex_unlock(&mutex);
      return;
    case 'w':
    case 'r':
      pthread_rwlock_unlock(&readers_and_writers);
      return;
    case 'u':
    case 'U':
    case 'p':
      sem_post(&units);
      return;
    case 'n':
    case 'N':
    case 'k':
    case 'O':
      sem_post(named);
      return;
    case 's':
      pthread_spin_unlock(&spin);
      return;
    case 't':
      __atomic_store_n(&ticket.serving, ticket.serving + 1, __ATOMIC_RELEASE);
      return;
    default:
      __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
  }
}

// Nobody ends before all are there: who starts later would take the core of the one that ended.
// Where all spin all the time they had better not begin together.
static void* exclude(void* unused) {
  if (outside != 0 || !strchr("stf", kind)) pthread_barrier_wait(&meeting);
  // All open it, one of them makes it.
  if (kind == 'O') {
    sem_t* const mine = sem_open(name, O_CREAT, 0600, 1);
    if (mine == SEM_FAILED) exit(3);
    __atomic_store_n(&named, mine, __ATOMIC_RELAXED);
  }
  for (long i = 0; i < rounds; ++i) {
    take();
    spend(held);
    __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    give();
    spend(outside);
  }
  return unused;
}

static void wait_for_condition(void) {
  if (kind == 'd')
    pthread_cond_timedwait(&is_there, &mutex, &far_off);
  else
    pthread_cond_wait(&is_there, &mutex);
}
static void* produce(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    spend(held);
    pthread_mutex_lock(&mutex);
    goods = 1;
    pthread_cond_signal(&is_there);
    while (goods != 0) wait_for_condition();
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}
static void* consume(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&mutex);
    while (goods == 0) wait_for_condition();
    pthread_mutex_unlock(&mutex);
    spend(outside);
    pthread_mutex_lock(&mutex);
    goods = 0;
    pthread_cond_signal(&is_there);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

// Goods that a semaphore counts.
static void* post(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    spend(held);
    sem_post(&units);
    sem_wait(&used);
  }
  return unused;
}
static void* use(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    sem_wait(&units);
    spend(outside);
    sem_post(&used);
  }
  return unused;
}

// In each round another one is slow.
static void* meet(void* number) {
  for (long i = 0; i < rounds; ++i) {
    spend((long)number == i % 2 ? held : 0);
    pthread_barrier_wait(&meeting);
  }
  return 0;
}

static void spend_once(void) { spend(held); }
// All but the first one come, in the run, when it is done.
static void* do_once(void* number) {
  while (number && !has_ended) usleep(1000);
  pthread_once(&once, spend_once);
  has_ended = 1;
  spend(number ? outside : 0);
  return 0;
}

static void* end(void* unused) {
  spend(held);
  has_ended = 1;
  return unused;
}

// The first one waits for what comes later than it is willing to wait.
static void* give_up(void* unused) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_nsec += 10000000;
  if (limit.tv_nsec >= 1000000000) {
    limit.tv_nsec -= 1000000000;
    ++limit.tv_sec;
  }
  pthread_mutex_lock(&mutex);
  const int result = pthread_cond_timedwait(&is_there, &mutex, &limit);
  pthread_mutex_unlock(&mutex);
  has_ended = 1;
  spend(outside);
  return result == 0 ? (void*)1 : unused;
}
static void* come_late(void* unused) {
  spend(held);
  while (!has_ended) usleep(1000);
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&is_there);
  pthread_mutex_unlock(&mutex);
  return unused;
}

// A handler gives the unit for which the thread waits; the second one comes later.
static pthread_t waiting;
static void give_unit(int unused) {
  (void)unused;
  sem_post(&units);
}
static void* wait_twice(void* unused) {
  sem_wait(&units);
  spend(outside);
  sem_wait(&units);
  return unused;
}
static void* interrupt(void* unused) {
  usleep(20000);
  pthread_kill(waiting, SIGUSR1);
  usleep(20000);
  spend(held);
  sem_post(&units);
  return unused;
}

typedef void* (*Work)(void*);
static Work work_of(int i) {
  switch (kind) {
    case 'c':
    case 'd':
      return i == 0 ? produce : consume;
    case 'g':
      return i == 0 ? post : use;
    case 'b':
      return meet;
    case 'o':
      return do_once;
    case 'j':
      return end;
    case 'e':
      return i == 0 ? give_up : come_late;
    case 'h':
      return i == 0 ? wait_twice : interrupt;
    default:
      return exclude;
  }
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  pthread_t thread[kMost];
  kind = argv[1][0];
  const int threads = atoi(argv[2]);
  rounds = atol(argv[3]);
  held = atol(argv[4]);
  outside = atol(argv[5]);
  pthread_spin_init(&spin, 0);
  sem_init(&units, 0, strchr("gh", kind) ? 0 : kind == 'p' ? 2 : 1);
  if (strchr("nNk", kind)) {
    // 'N': a new one where another one was. 'k': the same again, which keeps its unit.
    const unsigned first = kind == 'N' ? 3 : 1;
    named = sem_open("/gpusim-locks", O_CREAT | O_EXCL, 0600, first);
    if (named == SEM_FAILED) return 3;
    if (kind != 'n') {
      const sem_t* const before = named;
      if (kind == 'N') sem_unlink("/gpusim-locks");
      sem_close(named);
      named = sem_open("/gpusim-locks", O_CREAT, 0600, kind == 'N' ? 1 : 3);
      if (named != before) return 4;
    }
    sem_unlink("/gpusim-locks");
  }
  snprintf(name, sizeof name, "/%s", argv[1]);
  const struct sigaction action = {.sa_handler = give_unit, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  sem_init(&used, 0, 0);
  pthread_barrier_init(&meeting, 0, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    pthread_create(&thread[i], 0, work_of(i), (void*)(long)i);
    waiting = thread[0];
  }
  if (kind == 'j') {
    while (!has_ended) usleep(1000);
    usleep(20000);
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], 0);
  if (kind == 'j') spend(outside);
  if (kind == 'O') sem_unlink(name);
  return work_of(0) != exclude || counter == threads * rounds ? 0 : 1;
}
