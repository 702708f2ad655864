// Cores that wait in a queue, each for a word of its own on its own stack.
#ifndef GPUSIM_SYNC_WAITERS_H
#define GPUSIM_SYNC_WAITERS_H

#include "gpusim_sync.h"

typedef struct {
  uintptr_t next;    // the one behind, 0 if none (yet)
  uint32_t waiting;  // 1, until it is woken
} gpusim_waiter_t;

// Ends the wait of one core. *waiter is gone from then on.
static inline void gpusim_wake(gpusim_waiter_t* waiter) {
  __atomic_store_n(&waiter->waiting, 0, __ATOMIC_RELEASE);
}

// The next three with the queue's guard held.
static inline void gpusim_waiters_add(gpusim_waiters_t* waiters, gpusim_waiter_t* me) {
  me->next = 0;
  me->waiting = 1;
  if (waiters->first == 0) {
    __atomic_store_n(&waiters->first, (uintptr_t)me, __ATOMIC_RELAXED);
  } else {
    ((gpusim_waiter_t*)waiters->last)->next = (uintptr_t)me;
  }
  waiters->last = (uintptr_t)me;
}

// The one that has waited longest, taken out of the queue; null if nobody waits.
static inline gpusim_waiter_t* gpusim_waiters_take(gpusim_waiters_t* waiters) {
  gpusim_waiter_t* const waiter = (gpusim_waiter_t*)waiters->first;
  if (waiter != 0) __atomic_store_n(&waiters->first, waiter->next, __ATOMIC_RELAXED);
  return waiter;
}

// The whole queue, linked by `next`.
static inline gpusim_waiter_t* gpusim_waiters_take_all(gpusim_waiters_t* waiters) {
  gpusim_waiter_t* const waiter = (gpusim_waiter_t*)waiters->first;
  __atomic_store_n(&waiters->first, 0, __ATOMIC_RELAXED);
  return waiter;
}

#endif  // GPUSIM_SYNC_WAITERS_H
