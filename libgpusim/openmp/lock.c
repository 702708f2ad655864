// Locks: the run-time's own, critical, atomic, and the locks of <omp.h>.
#include "lock.h"

#include <stdlib.h>

#include "omp_internal.h"

uint32_t gpusim_omp_lock_words[kLockWords];

void gpusim_omp_lock_wait(struct lock* lock, uint32_t ticket) {
  uint32_t* const word = lock_word(lock, ticket);
  for (;;) {
    const uint32_t seen = LOAD(word);  // before the look at the lock, or a handover could be missed
    if (LOAD(&lock->serving) == ticket) return;
    wait_while_u32(word, seen);
  }
}

static struct lock critical_lock;
static struct lock atomic_lock;

void GOMP_critical_start(void) { lock_acquire(&critical_lock); }
void GOMP_critical_end(void) { lock_release(&critical_lock); }
// A critical section's name is a pointer-sized common symbol, zero at the start: room for a lock.
_Static_assert(sizeof(struct lock) <= sizeof(void*), "named critical sections");
void GOMP_critical_name_start(void** name) { lock_acquire((struct lock*)name); }
void GOMP_critical_name_end(void** name) { lock_release((struct lock*)name); }
void GOMP_atomic_start(void) { lock_acquire(&atomic_lock); }
void GOMP_atomic_end(void) { lock_release(&atomic_lock); }

// omp_lock_t has room for four bytes: the same lock with tickets of 16 bits, the one being served
// in the low half. 65,536 threads can hold or want such a lock at once.
static inline uint16_t* serving_half(uint32_t* lock) { return (uint16_t*)lock; }

static void small_lock_acquire(uint32_t* lock) {
  const uint16_t ticket = (uint16_t)(FETCH_ADD(lock, UINT32_C(1) << 16) >> 16);
  if ((uint16_t)LOAD(lock) == ticket) return;
  uint32_t* const word = lock_word(lock, ticket);
  for (;;) {
    const uint32_t seen = LOAD(word);
    if ((uint16_t)LOAD(lock) == ticket) return;
    wait_while_u32(word, seen);
  }
}

static bool small_lock_try(uint32_t* lock) {
  const uint32_t seen = LOAD(lock);
  return (uint16_t)seen == seen >> 16 &&
         compare_and_set_u32(lock, seen, seen + (UINT32_C(1) << 16));
}

static void small_lock_release(uint32_t* lock) {
  const uint16_t next = (uint16_t)(RELAXED(lock) + 1);
  STORE(serving_half(lock), next);
  settle_store();
  if (LOAD(lock) >> 16 != next) bump(lock_word(lock, next));
}

static void check_lock_capacity(void) {
  if (omp.cores > 65536)
    omp_fatal("omp_init_lock: locks serve up to 65,536 threads, and there are %u cores", omp.cores);
}

// The layouts of libgomp's <omp.h> on 64-bit Linux: 4 bytes, and 16 bytes.
typedef uint32_t omp_lock_t;
typedef struct {
  uint32_t lock;
  int32_t depth;
  void* owner;  // a task
} omp_nest_lock_t;

void omp_init_lock(omp_lock_t* lock) {
  check_lock_capacity();
  *lock = 0;
}
void omp_init_lock_with_hint(omp_lock_t* lock, int hint) {
  (void)hint;
  omp_init_lock(lock);
}
void omp_destroy_lock(omp_lock_t* lock) { (void)lock; }
void omp_set_lock(omp_lock_t* lock) { small_lock_acquire(lock); }
void omp_unset_lock(omp_lock_t* lock) { small_lock_release(lock); }
// Programs call it again and again: who has the lock should not wait for them.
int omp_test_lock(omp_lock_t* lock) {
  if (small_lock_try(lock)) return 1;
  pause_briefly();
  return 0;
}

void omp_init_nest_lock(omp_nest_lock_t* lock) {
  check_lock_capacity();
  *lock = (omp_nest_lock_t){0};
}
void omp_init_nest_lock_with_hint(omp_nest_lock_t* lock, int hint) {
  (void)hint;
  omp_init_nest_lock(lock);
}
void omp_destroy_nest_lock(omp_nest_lock_t* lock) { (void)lock; }

void omp_set_nest_lock(omp_nest_lock_t* lock) {
  void* const me = current_task(self());
  if (LOAD(&lock->owner) != me) {
    small_lock_acquire(&lock->lock);
    STORE(&lock->owner, me);
  }
  ++lock->depth;
}
void omp_unset_nest_lock(omp_nest_lock_t* lock) {
  if (--lock->depth != 0) return;
  STORE(&lock->owner, (void*)0);
  small_lock_release(&lock->lock);
}
int omp_test_nest_lock(omp_nest_lock_t* lock) {
  void* const me = current_task(self());
  if (LOAD(&lock->owner) != me) {
    if (!small_lock_try(&lock->lock)) return 0;
    STORE(&lock->owner, me);
  }
  return ++lock->depth;
}
