// Threads of a C library that exclude each other, or wait for each other: KIND THREADS ROUNDS HELD
// OUTSIDE, the last two in rounds of spend().
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 16 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_there = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static struct { uint32_t next, serving; } ticket;
static uint32_t flag;
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
    default:
      while (__atomic_exchange_n(&flag, 1, __ATOMIC_ACQUIRE) != 0) {
      }
  }
}
static void give(void) {
  switch (kind) {
    case 'm':
      pthread_mutex_unlock(&mutex);
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

static void* exclude(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    take();
    spend(held);
    ++counter;
    give();
    spend(outside);
  }
  return unused;
}

static void* produce(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    spend(held);
    pthread_mutex_lock(&mutex);
    goods = 1;
    pthread_cond_signal(&is_there);
    while (goods != 0) pthread_cond_wait(&is_there, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}
static void* consume(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&mutex);
    while (goods == 0) pthread_cond_wait(&is_there, &mutex);
    pthread_mutex_unlock(&mutex);
    spend(outside);
    pthread_mutex_lock(&mutex);
    goods = 0;
    pthread_cond_signal(&is_there);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
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
  for (int i = 0; i < threads; ++i)
    pthread_create(&thread[i], 0, kind != 'c' ? exclude : i == 0 ? produce : consume, 0);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], 0);
  return kind == 'c' || counter == threads * rounds ? 0 : 1;
}
