// Ticket lock, spin lock, mutex, reader-writer lock, once.
#include "gpusim_sync.h"
#include "waiters.h"

// ---- Ticket lock -----------------------------------------------------------------------------

void gpusim_lock(gpusim_lock_t* lock) {
  const uint32_t ticket = __atomic_fetch_add(&lock->next_ticket, 1, __ATOMIC_RELAXED);
  gpusim_wait_until_equal(&lock->now_serving, ticket);
}

int gpusim_trylock(gpusim_lock_t* lock) {
  uint32_t serving = __atomic_load_n(&lock->now_serving, __ATOMIC_ACQUIRE);
  return __atomic_compare_exchange_n(&lock->next_ticket, &serving, serving + 1, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED);
}

void gpusim_unlock(gpusim_lock_t* lock) {
  // Only the holder writes now_serving.
  const uint32_t serving = __atomic_load_n(&lock->now_serving, __ATOMIC_RELAXED);
  __atomic_store_n(&lock->now_serving, serving + 1, __ATOMIC_RELEASE);
}

// ---- Spin lock -------------------------------------------------------------------------------

int gpusim_spin_trylock(gpusim_spinlock_t* lock) {
  return __atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 &&
         __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) == 0;
}

void gpusim_spin_lock(gpusim_spinlock_t* lock) {
  while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) != 0) {
    gpusim_wait_while_equal(&lock->held, 1);
  }
}

void gpusim_spin_unlock(gpusim_spinlock_t* lock) {
  __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

// ---- Mutex -----------------------------------------------------------------------------------
// A queue lock after Mellor-Crummey and Scott ("Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors", 1991), in the form of the K42 kernel, in which a core's place in
// the queue is needed only until it has the lock: then the lock's own word `next` stands for it.
//
//   tail == 0                 free
//   tail == holder's place    held, nobody waits
//   otherwise                 held; the last that waits is `tail`; the first is `next`, which may
//                             lag behind: a core first puts itself at the tail and then tells the
//                             one in front of it
// `next` is 0 whenever the lock is free or just handed over.

// gpusim_waiter_t starts with its `next`, and so does the holder's place.
static uintptr_t holder_place(gpusim_mutex_t* mutex) { return (uintptr_t)&mutex->next; }

// Waits until the core behind has told its place, and returns that.
static uintptr_t wait_for_next(const uintptr_t* next) {
#if UINTPTR_MAX == UINT32_MAX
  gpusim_wait_while_equal((const uint32_t*)next, 0);
#else
  gpusim_wait_while_equal_u64((const uint64_t*)next, 0);
#endif
  return __atomic_load_n(next, __ATOMIC_ACQUIRE);
}

int gpusim_mutex_trylock(gpusim_mutex_t* mutex) {
  uintptr_t nobody = 0;
  return __atomic_load_n(&mutex->tail, __ATOMIC_RELAXED) == 0 &&
         __atomic_compare_exchange_n(&mutex->tail, &nobody, holder_place(mutex), 0,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void gpusim_mutex_lock(gpusim_mutex_t* mutex) {
  if (gpusim_mutex_trylock(mutex)) return;
  // An exchange, not a loop around compare-and-swap: of many cores that come at once each needs
  // exactly one.
  gpusim_waiter_t me = {0, 1};
  const uintptr_t my_place = (uintptr_t)&me;
  const uintptr_t in_front = __atomic_exchange_n(&mutex->tail, my_place, __ATOMIC_ACQ_REL);
  if (in_front != 0) {
    __atomic_store_n((uintptr_t*)in_front, my_place, __ATOMIC_RELEASE);
    gpusim_wait_while_equal(&me.waiting, 1);
  }
  // It is mine. From here on the lock's own place stands for me.
  uintptr_t behind = __atomic_load_n(&me.next, __ATOMIC_ACQUIRE);
  if (behind == 0) {
    uintptr_t expected = my_place;
    if (__atomic_compare_exchange_n(&mutex->tail, &expected, holder_place(mutex), 0,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
    behind = wait_for_next(&me.next);
  }
  __atomic_store_n(&mutex->next, behind, __ATOMIC_RELAXED);
}

void gpusim_mutex_unlock(gpusim_mutex_t* mutex) {
  uintptr_t behind = __atomic_load_n(&mutex->next, __ATOMIC_ACQUIRE);
  if (behind == 0) {
    uintptr_t expected = holder_place(mutex);
    if (__atomic_compare_exchange_n(&mutex->tail, &expected, 0, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return;
    }
    behind = wait_for_next(&mutex->next);
  }
  __atomic_store_n(&mutex->next, 0, __ATOMIC_RELAXED);
  gpusim_wake((gpusim_waiter_t*)behind);
}

// ---- Reader-writer lock ----------------------------------------------------------------------
// Phase-fair, after Brandenburg and Anderson ("Spin-based reader-writer synchronization for
// multiprocessor real-time systems", 2010); readers watch `turn` and not `entered`, which each of
// them changes.

enum { kParity = 1, kWriter = 2, kReader = 4 };

void gpusim_read_lock(gpusim_rwlock_t* lock) {
  const uint32_t seen = __atomic_fetch_add(&lock->entered, kReader, __ATOMIC_ACQUIRE);
  if ((seen & kWriter) == 0) return;
  // While writer number k is there, `turn` is k; it becomes k + 1. It cannot come to the same
  // parity again before this reader has gone on, because writer k + 1 waits for it to leave.
  const uint32_t turn = __atomic_load_n(&lock->turn, __ATOMIC_ACQUIRE);
  if ((turn & kParity) == (seen & kParity)) gpusim_wait_while_equal(&lock->turn, turn);
}

void gpusim_read_unlock(gpusim_rwlock_t* lock) {
  __atomic_fetch_add(&lock->left, kReader, __ATOMIC_RELEASE);
}

void gpusim_write_lock(gpusim_rwlock_t* lock) {
  gpusim_mutex_lock(&lock->writers);
  const uint32_t mark = kWriter | (lock->turn & kParity);
  const uint32_t readers = __atomic_fetch_add(&lock->entered, mark, __ATOMIC_ACQUIRE);
  gpusim_wait_until_equal(&lock->left, readers);  // the low bits were 0
}

void gpusim_write_unlock(gpusim_rwlock_t* lock) {
  const uint32_t turn = lock->turn;
  __atomic_fetch_sub(&lock->entered, kWriter | (turn & kParity), __ATOMIC_RELEASE);
  __atomic_store_n(&lock->turn, turn + 1, __ATOMIC_RELEASE);
  gpusim_mutex_unlock(&lock->writers);
}

// ---- Once ------------------------------------------------------------------------------------

enum { kFresh, kRunning, kDone };

void gpusim_once(gpusim_once_t* once, void (*function)(void*), void* argument) {
  uint32_t state = __atomic_load_n(&once->state, __ATOMIC_ACQUIRE);
  if (state == kDone) return;
  if (state == kFresh && __atomic_compare_exchange_n(&once->state, &state, kRunning, 0,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    function(argument);
    __atomic_store_n(&once->state, kDone, __ATOMIC_RELEASE);
    return;
  }
  gpusim_wait_while_equal(&once->state, kRunning);
}
