// A fair lock whose waiters do not disturb each other: a ticket lock in which each ticket waits on
// a word of its own, out of one table for all locks. A handover touches two words, however many
// wait. (The idea: Dice and Kogan, "TWA: ticket locks augmented with a waiting array", 2018.)
#ifndef GPUSIM_OMP_LOCK_H
#define GPUSIM_OMP_LOCK_H

#include "wait.h"

enum { kLockWords = 4096 };
extern uint32_t gpusim_omp_lock_words[kLockWords];

// Zero is free.
struct lock {
  uint32_t next;     // ticket of who asks next
  uint32_t serving;  // ticket of who holds it
};

static inline uint32_t* lock_word(const void* lock, uint32_t ticket) {
  const uint32_t place = (uint32_t)((uintptr_t)lock >> 2) * 0x9e3779b1u >> 12;
  return &gpusim_omp_lock_words[(place + ticket) % kLockWords];
}

void gpusim_omp_lock_wait(struct lock* lock, uint32_t ticket);

static inline void lock_acquire(struct lock* lock) {
  const uint32_t ticket = FETCH_ADD(&lock->next, 1);
  if (__builtin_expect(LOAD(&lock->serving) != ticket, false)) gpusim_omp_lock_wait(lock, ticket);
}

static inline void lock_release(struct lock* lock) {
  const uint32_t next = RELAXED(&lock->serving) + 1;
  STORE(&lock->serving, next);
  settle_store();
  if (LOAD(&lock->next) != next) bump(lock_word(lock, next));
}

#endif  // GPUSIM_OMP_LOCK_H
