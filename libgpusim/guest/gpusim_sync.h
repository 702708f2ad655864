// Synchronisation for guest programs: atomics, locks, events, groups of cores, reductions, shared
// loops. See docs/howto/guest_program.md. Usable from C and C++.
//
// All objects start as zeroes, so static ones need no call; the few that take a number have an
// initialiser. They may lie anywhere that all cores concerned can reach, also on one core's stack,
// and must not be copied or moved while in use.
//
// Unless something else is said: any core may call any function; taking acquires and giving back
// releases, so what a core wrote before it gave a lock back (set an event, posted, signalled), the
// core that takes it next sees. Every wait is a wait for one word to change its value
// (gpusim_wait_while_equal), so a core that waits leaves the processor to the others.
//
// "Wakes" below is what a change costs: how many waiting cores have to look again. On many cores
// prefer what wakes one.
#ifndef GPUSIM_SYNC_H
#define GPUSIM_SYNC_H

#include "gpusim_atomic.h"
#include "gpusim_group.h"
#include "gpusim_guest.h"
#include "gpusim_loop.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Mutex ---------------------------------------------------------------------------------

// The lock to take in doubt. Cores get it in the order in which they asked. Each waits for a word
// on its own stack, so handing over wakes one core, however many wait. Costs two atomic operations.
// The core that locked it unlocks it; a core that has it must not lock it again.
typedef struct {
  uintptr_t tail;
  uintptr_t next;
} gpusim_mutex_t;

void gpusim_mutex_lock(gpusim_mutex_t* mutex);
int gpusim_mutex_trylock(gpusim_mutex_t* mutex);  // 1 if it took it; never waits
void gpusim_mutex_unlock(gpusim_mutex_t* mutex);

// ---- Spin lock -----------------------------------------------------------------------------

// The smallest lock (test and test-and-set): one atomic operation to take it, a store to give it
// back, one word. Not fair, and giving it back wakes all that wait. Any core may unlock it.
// gpusim_lock_t (gpusim_guest.h) is the fair one of that size.
typedef struct {
  uint32_t held;
} gpusim_spinlock_t;

void gpusim_spin_lock(gpusim_spinlock_t* lock);
int gpusim_spin_trylock(gpusim_spinlock_t* lock);  // 1 if it took it; never waits
void gpusim_spin_unlock(gpusim_spinlock_t* lock);

// ---- Reader-writer lock --------------------------------------------------------------------

// Many readers or one writer. Fair by turns: a writer waits for the readers that were there before
// it, and readers that come while a writer is there wait for that one writer only. Reading costs
// two atomic additions. A writer that leaves wakes the readers that wait; writers queue as in a
// mutex. A core must not lock it twice, not even for reading.
typedef struct {
  uint32_t entered;  // readers that came, times 4; the low bits: a writer is there, its parity
  uint32_t left;     // readers that went, times 4
  __attribute__((aligned(8))) uint32_t turn;  // writers that went
  gpusim_mutex_t writers;
} gpusim_rwlock_t;

void gpusim_read_lock(gpusim_rwlock_t* lock);
void gpusim_read_unlock(gpusim_rwlock_t* lock);
void gpusim_write_lock(gpusim_rwlock_t* lock);
void gpusim_write_unlock(gpusim_rwlock_t* lock);

// ---- Semaphore -----------------------------------------------------------------------------

// Cores that wait, in the order in which they came. For the library's own use.
typedef struct {
  gpusim_mutex_t guard;
  uintptr_t first;
  uintptr_t last;
} gpusim_waiters_t;

// Counts up to 2^31 - 1 units. Waiting takes one unit, and waits until there is one; posting adds
// one, and wakes one core. One atomic operation where nobody has to wait. Any core may post.
typedef struct {
  uint32_t units;  // as a signed number: below 0 if that many cores wait
  uint32_t owed;   // units for cores that are about to wait
  gpusim_waiters_t waiters;
} gpusim_semaphore_t;

#define GPUSIM_SEMAPHORE_INIT(units) \
  {                                  \
    (units), 0, { {0, 0}, 0, 0 }     \
  }

void gpusim_semaphore_init(gpusim_semaphore_t* semaphore, uint32_t units);  // nobody may use it yet
void gpusim_semaphore_wait(gpusim_semaphore_t* semaphore);
int gpusim_semaphore_trywait(gpusim_semaphore_t* semaphore);  // 1 if it took a unit; never waits
void gpusim_semaphore_post(gpusim_semaphore_t* semaphore);

// ---- Condition variable --------------------------------------------------------------------

// To wait, with a mutex held, for a condition on what the mutex protects:
//   gpusim_mutex_lock(&m); while (!condition) gpusim_cond_wait(&c, &m); ...
//   gpusim_mutex_unlock(&m);
// A signal wakes the core that has waited longest, a broadcast all that wait. Signal with the mutex
// held, or after having held it when the condition was made true; then no core misses it.
typedef struct {
  gpusim_waiters_t waiters;
} gpusim_cond_t;

void gpusim_cond_wait(gpusim_cond_t* condition, gpusim_mutex_t* mutex);
void gpusim_cond_signal(gpusim_cond_t* condition);
void gpusim_cond_broadcast(gpusim_cond_t* condition);

// ---- Events --------------------------------------------------------------------------------

// Stays set until it is reset; setting it wakes all that wait, also those who do not get to look
// before it is reset. One compare-and-swap to set or reset, one load to find it set.
typedef struct {
  uint32_t changes;  // odd: set
} gpusim_event_t;

void gpusim_event_set(gpusim_event_t* event);
void gpusim_event_reset(gpusim_event_t* event);
void gpusim_event_wait(gpusim_event_t* event);
int gpusim_event_is_set(const gpusim_event_t* event);

// Resets itself: each setting lets one core through, the one that has waited longest or, if nobody
// waits, the next that comes. Setting it again before that changes nothing.
typedef struct {
  uint32_t set;
  gpusim_waiters_t waiters;
} gpusim_auto_event_t;

void gpusim_auto_event_set(gpusim_auto_event_t* event);
void gpusim_auto_event_wait(gpusim_auto_event_t* event);

// The bare events of the machine are gpusim_wait_for_event() and gpusim_signal_event()
// (gpusim_guest.h).

// ---- Once ----------------------------------------------------------------------------------

// The first core that comes calls the function; all return after it has returned. One load
// afterwards.
typedef struct {
  uint32_t state;
} gpusim_once_t;

void gpusim_once(gpusim_once_t* once, void (*function)(void*), void* argument);

#ifdef __cplusplus
}
#endif

#endif  // GPUSIM_SYNC_H
