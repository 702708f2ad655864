// Sums of all threads, right and wrong: -DMODE says how. Every program returns 0, whatever the sum.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define RACY 0
#define ATOMIC 1
#define MUTEX 2
#define REDUCTION 3
#define BARRIER 4
#define JOIN 5
#define HALF 6        // an atomic addition beside a plain store
#define NEIGHBOURS 7  // bytes of one word, each a thread's own
#define COPY 8        // memcpy() writes what another thread reads
#define PIPELINE 9    // a flag with release and acquire

#ifndef THREADS
#define THREADS 64
#endif

static uint64_t total;
static uint8_t bytes[THREADS];

#if MODE == MUTEX || MODE == JOIN
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t cells[THREADS];

static void* work(void* argument) {
  const uint64_t me = (uintptr_t)argument;
  cells[me] = me;
#if MODE == MUTEX
  pthread_mutex_lock(&mutex);
  total += me;
  pthread_mutex_unlock(&mutex);
#endif
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 1; i < THREADS; ++i) pthread_create(&threads[i], 0, work, (void*)i);
  for (uintptr_t i = 1; i < THREADS; ++i) pthread_join(threads[i], 0);
  for (uintptr_t i = 1; i < THREADS; ++i) total += cells[i];  // behind the join
  printf("%llu\n", (unsigned long long)total);
  (void)mutex;
  (void)bytes;
  return 0;
}
#else
#include <omp.h>
#include <string.h>

static uint64_t cells[2 * THREADS], flag;

int main(void) {
#if MODE == REDUCTION
#pragma omp parallel for reduction(+ : total)
  for (int i = 0; i < 4 * THREADS; ++i) total += (uint64_t)i;
#else
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
#if MODE == RACY
    total += (uint64_t)me;
#elif MODE == ATOMIC
#pragma omp atomic
    total += (uint64_t)me;
#elif MODE == BARRIER
    cells[me] = (uint64_t)me;
#pragma omp barrier
    cells[THREADS - 1 - me] += 1;
#elif MODE == HALF
    if (me == 0)
      total = 1;
    else
      __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
#elif MODE == NEIGHBOURS
    bytes[me] = (uint8_t)me;
#elif MODE == COPY
    if (me == 0)
      memcpy(cells, cells + 8, 8 * (size_t)omp_get_num_threads() / 16);
    else if (me == 1)
      total = cells[1];
#elif MODE == PIPELINE
    if (me == 0) {
      total = 1;
      __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    } else if (me == 1) {
      while (!__atomic_load_n(&flag, __ATOMIC_RELAXED)) {
      }
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      total += 1;
    }
#endif
  }
#endif
  printf("%d\n", (int)(total + cells[0] + bytes[0] + flag) < 0);
  return 0;
}
#endif
