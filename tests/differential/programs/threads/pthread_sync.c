// Mutexes of all kinds, conditions, barriers, read-write locks, spin locks, semaphores, time-outs.
// cores: 8
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { kThreads = 7, kRounds = 300 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive, checked;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER, space = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static long counter, spun, nested, written[2], read_errors, serial;

static void* count(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    ++counter;
    pthread_mutex_unlock(&mutex);
    pthread_spin_lock(&spin);
    ++spun;
    pthread_spin_unlock(&spin);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    ++nested;
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
  }
  return NULL;
}
static void* meet(void* argument) {
  long mine = 0;
  for (int i = 0; i < 20; ++i) {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
      pthread_mutex_lock(&mutex);
      ++serial;
      pthread_mutex_unlock(&mutex);
    }
    mine += i * (long)(intptr_t)argument;
  }
  return (void*)mine;
}
static void* read_or_write(void* argument) {
  for (int i = 0; i < 100; ++i) {
    if ((intptr_t)argument == 0 || i % 10 == 9) {
      pthread_rwlock_wrlock(&rwlock);
      ++written[0];
      ++written[1];
      pthread_rwlock_unlock(&rwlock);
    } else {
      pthread_rwlock_rdlock(&rwlock);
      read_errors += written[0] != written[1];
      pthread_rwlock_unlock(&rwlock);
    }
  }
  return NULL;
}
static int queue[4], filled, in, out;
static void* produce(void* argument) {
  for (int i = 1; i <= 200; ++i) {
    pthread_mutex_lock(&mutex);
    while (filled == 4) pthread_cond_wait(&space, &mutex);
    queue[in++ % 4] = i * (int)(intptr_t)argument;
    ++filled;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}
static void* consume(void* argument) {
  (void)argument;
  long sum = 0;
  for (int i = 0; i < 200; ++i) {
    pthread_mutex_lock(&mutex);
    while (filled == 0) pthread_cond_wait(&changed, &mutex);
    sum += queue[out++ % 4];
    --filled;
    pthread_cond_signal(&space);
    pthread_mutex_unlock(&mutex);
  }
  return (void*)sum;
}
static void* post(void* argument) {
  for (int i = 0; i < 50; ++i) sem_post(&semaphore);
  return argument;
}
static int go;
static void* wait_for_all(void* argument) {
  pthread_mutex_lock(&mutex);
  while (!go) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}
static long run(int threads, void* (*f)(void*)) {
  pthread_t t[kThreads];
  long sum = 0;
  for (int i = 0; i < threads; ++i) pthread_create(&t[i], NULL, f, (void*)(intptr_t)i);
  if (f == wait_for_all) {
    const struct timespec soon = {.tv_nsec = 5000000};
    nanosleep(&soon, NULL);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  for (int i = 0; i < threads; ++i) {
    void* result;
    pthread_join(t[i], &result);
    sum += (long)(intptr_t)result;
  }
  return sum;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checked, &attributes);
  pthread_spin_init(&spin, 0);
  pthread_barrier_init(&barrier, NULL, kThreads);
  sem_init(&semaphore, 0, 0);

  run(kThreads, count);
  printf("counted %ld %ld %ld\n", counter, spun, nested);
  printf("barrier %ld", run(kThreads, meet));
  printf(" serial %ld\n", serial);
  run(kThreads, read_or_write);
  printf("written %ld %ld errors %ld\n", written[0], written[1], read_errors);
  pthread_t p[2], c[2];
  for (int i = 0; i < 2; ++i) pthread_create(&p[i], NULL, produce, (void*)(intptr_t)(i + 1));
  for (int i = 0; i < 2; ++i) pthread_create(&c[i], NULL, consume, NULL);
  long sum = 0;
  for (int i = 0; i < 2; ++i) {
    void* result;
    pthread_join(p[i], NULL);
    pthread_join(c[i], &result);
    sum += (long)(intptr_t)result;
  }
  printf("queue %ld\n", sum);
  pthread_create(&p[0], NULL, post, NULL);
  for (int i = 0; i < 50; ++i) sem_wait(&semaphore);
  pthread_join(p[0], NULL);
  puts("semaphore");
  printf("broadcast %ld\n", run(kThreads, wait_for_all));

  pthread_mutex_lock(&checked);
  printf("relock %d unlock twice", pthread_mutex_lock(&checked) == EDEADLK);
  pthread_mutex_unlock(&checked);
  printf(" %d\n", pthread_mutex_unlock(&checked) == EPERM);
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_nsec += 3000000;
  if (deadline.tv_nsec >= 1000000000) deadline.tv_nsec -= 1000000000, ++deadline.tv_sec;
  pthread_mutex_lock(&mutex);
  printf("cond time-out %d", pthread_cond_timedwait(&changed, &mutex, &deadline) == ETIMEDOUT);
  printf(" mutex %d", pthread_mutex_timedlock(&mutex, &deadline) == ETIMEDOUT);
  printf(" semaphore %d %d\n", sem_timedwait(&semaphore, &deadline), errno == ETIMEDOUT);
  printf("busy %d\n", pthread_mutex_trylock(&mutex) == EBUSY);
  return 0;
}
