// cores: 8
// Locks that the kernel hands over: through pthreads, and each futex operation by itself.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(void* word, int op, long val, const void* fourth, void* second, long val3) {
  const long result = syscall(SYS_futex, word, op, val, fourth, second, val3);
  return result < 0 ? -errno : result;
}
static uint32_t tid(void) { return (uint32_t)syscall(SYS_gettid); }
static void until(volatile uint32_t* word, uint32_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) usleep(1000);
}
static void set(volatile uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
static struct timespec soon(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += 20000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

static pthread_mutex_t shared_mutex;
static long counter;

static void make_mutex(pthread_mutex_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutexattr_settype(&attributes, type);
  printf("init %d\n", pthread_mutex_init(mutex, &attributes));
  pthread_mutexattr_destroy(&attributes);
}

static void* add(void* unused) {
  for (int i = 0; i < 300; i++) {
    pthread_mutex_lock(&shared_mutex);
    const long before = counter;
    if (i % 50 == 0) sched_yield();
    counter = before + 1;
    pthread_mutex_unlock(&shared_mutex);
  }
  return unused;
}

static void* try_others(void* mutex) {
  const struct timespec limit = soon(CLOCK_REALTIME);
  const int tried = pthread_mutex_trylock(mutex), timed = pthread_mutex_timedlock(mutex, &limit);
  printf("of another: try %d, timed %d, unlock %d\n", tried, timed, pthread_mutex_unlock(mutex));
  return NULL;
}

static void mutexes(void) {
  pthread_t threads[4];
  make_mutex(&shared_mutex, PTHREAD_MUTEX_NORMAL);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, add, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("counted %ld\n", counter);

  pthread_mutex_t checked, recursive;
  make_mutex(&checked, PTHREAD_MUTEX_ERRORCHECK);
  make_mutex(&recursive, PTHREAD_MUTEX_RECURSIVE);
  printf("lock %d\n", pthread_mutex_lock(&checked));
  printf("again %d\n", pthread_mutex_lock(&checked));
  pthread_create(&threads[0], NULL, try_others, &checked);
  pthread_join(threads[0], NULL);
  printf("unlock %d\n", pthread_mutex_unlock(&checked));
  for (int i = 0; i < 3; i++) printf("recursive %d\n", pthread_mutex_lock(&recursive));
  for (int i = 0; i < 3; i++) printf("recursive %d\n", pthread_mutex_unlock(&recursive));
}

// A ring of two threads: who closes it gets EDEADLK.
static uint32_t first, second;
static volatile uint32_t step;

static void* other_end(void* results) {
  long* result = results;
  result[0] = futex(&second, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
  set(&step, 1);
  result[1] = futex(&first, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
  result[2] = (first & FUTEX_TID_MASK) == tid();
  result[3] = futex(&first, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
  result[4] = futex(&second, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
  return NULL;
}

static void deadlock(void) {
  long others[5];
  pthread_t thread;
  printf("first %ld\n", futex(&first, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("own again %ld\n", futex(&first, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("own try %ld\n", futex(&first, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
  pthread_create(&thread, NULL, other_end, others);
  until(&step, 1);
  while (!(__atomic_load_n(&first, __ATOMIC_ACQUIRE) & FUTEX_WAITERS)) usleep(1000);
  printf("second %ld\n", futex(&second, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("try second %ld\n", futex(&second, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
  printf("unlock second %ld\n", futex(&second, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
  printf("wake a lock's waiter %ld\n", futex(&first, FUTEX_WAKE, 1, NULL, NULL, 0));
  printf("unlock first %ld\n", futex(&first, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
  pthread_join(thread, NULL);
  printf("the other: locks %ld %ld, owns %ld, unlocks %ld %ld\n", others[0], others[1], others[2],
         others[3], others[4]);
  printf("free %u %u\n", first, second);
}

static void edges(void) {
  uint32_t word = 0x3ffffff0;  // no such thread
  printf("no owner %ld\n", futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("marked %x\n", word);
  word = FUTEX_OWNER_DIED;
  printf("died %ld\n", futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("still marked %d\n", word == (FUTEX_OWNER_DIED | tid()));
  printf("unlock %ld %x\n", futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), word);
  printf("unlock free %ld\n", futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
  printf("not aligned %ld\n", futex((char*)&word + 1, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  printf("null %ld\n", futex(NULL, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  const struct timespec wrong = {0, 1000000000};
  printf("time %ld\n", futex(&word, FUTEX_LOCK_PI, 0, &wrong, NULL, 0));
}

// Waiters of a condition that move to a lock.
static uint32_t condition, lock;
static volatile uint32_t awake;

static void* wait_and_own(void* unused) {
  const long result = futex(&condition, FUTEX_WAIT_REQUEUE_PI, 7, NULL, &lock, 0);
  const int owner = (__atomic_load_n(&lock, __ATOMIC_ACQUIRE) & FUTEX_TID_MASK) == tid();
  __atomic_add_fetch(&awake, 1, __ATOMIC_RELEASE);
  printf("awake %ld, owner %d\n", result, owner);
  futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
  return unused;
}

static void requeue(void) {
  pthread_t threads[3];
  struct timespec limit = soon(CLOCK_MONOTONIC);
  set(&condition, 7);
  printf("late %ld\n", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 7, &limit, &lock, 0));
  printf("changed %ld\n", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 8, NULL, &lock, 0));
  printf("same %ld\n", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 7, NULL, &condition, 0));
  printf("lock %ld\n", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, wait_and_own, NULL);
  while (futex(&condition, FUTEX_WAKE, 1, NULL, NULL, 0) == 0) usleep(1000);
  printf("plain wake %ld\n", futex(&condition, FUTEX_WAKE, 1, NULL, NULL, 0));
  printf("two %ld\n", futex(&condition, FUTEX_CMP_REQUEUE_PI, 2, (void*)1, &lock, 7));
  printf("not the value %ld\n", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void*)9, &lock, 8));
  for (long moved = 0; moved < 3; usleep(1000)) {
    const long more = futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void*)9, &lock, 7);
    if (more < 0) printf("move %ld\n", more);
    moved += more;
  }
  printf("nobody yet %u\n", awake);
  futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  printf("free %u\n", lock);
}

// The other operations: bits, two clocks, moving, changing a second word.
static uint32_t word_a, word_b;

static void* sleep_on_bit(void* bit) {
  return (void*)(futex(&word_a, FUTEX_WAIT_BITSET, 0, NULL, NULL, (long)bit));
}
// Who is moved to where he waits already is counted, and sleeps on.
static long waiters(uint32_t* word) {
  return futex(word, FUTEX_CMP_REQUEUE, 0, (void*)100, word, *word);
}

static void plain(void) {
  pthread_t threads[4];
  struct timespec monotonic = soon(CLOCK_MONOTONIC), realtime = soon(CLOCK_REALTIME);
  const struct timespec past = {1, 0};
  printf("bits 0: %ld\n", futex(&word_a, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0));
  printf("monotonic %ld\n", futex(&word_a, FUTEX_WAIT_BITSET, 0, &monotonic, NULL, -1));
  printf("realtime %ld\n",
         futex(&word_a, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &realtime, NULL, -1));
  printf("past %ld\n", futex(&word_a, FUTEX_WAIT_BITSET, 0, &past, NULL, -1));
  printf("other value %ld\n", futex(&word_a, FUTEX_WAIT, 5, NULL, NULL, 0));
  printf("wake with a clock %ld\n", futex(&word_a, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0));
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, sleep_on_bit, (void*)(1L << i));
  while (waiters(&word_a) < 4) usleep(1000);
  printf("bit 1: %ld\n", futex(&word_a, FUTEX_WAKE_BITSET, 10, NULL, NULL, 2));
  printf("bit 1 again: %ld\n", futex(&word_a, FUTEX_WAKE_BITSET, 10, NULL, NULL, 2));
  printf("requeue %ld\n", futex(&word_a, FUTEX_CMP_REQUEUE, 0, (void*)2, &word_b, 0));
  printf("wrong %ld\n", futex(&word_a, FUTEX_CMP_REQUEUE, 0, (void*)2, &word_b, 1));
  printf("negative %ld\n", futex(&word_a, FUTEX_CMP_REQUEUE, -1, (void*)2, &word_b, 0));
  printf("wake op %ld", futex(&word_a, FUTEX_WAKE_OP, 9, (void*)9, &word_b,
                              FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)));
  printf(" leaves %u\n", word_b);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("unknown %ld\n", futex(&word_a, 99, 0, NULL, NULL, 0));
}

int main(void) {
  mutexes();
  deadlock();
  edges();
  requeue();
  plain();
  return 0;
}
