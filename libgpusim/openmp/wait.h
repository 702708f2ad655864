// Waiting and waking: the only place that knows where the program runs.
//
// Under gpusim a waiting core costs nothing: it watches one word (exclusive load) and sleeps (WFE)
// until another core changes the word's value. Elsewhere (Linux, qemu-user) a thread looks a few
// times and then sleeps in a futex.
#ifndef GPUSIM_OMP_WAIT_H
#define GPUSIM_OMP_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__aarch64__)
#define GPUSIM_OMP_IN_GUEST
#include "../guest/aarch64/gpusim_guest_isa.h"
#elif defined(__riscv)
#define GPUSIM_OMP_IN_GUEST
#include "../guest/riscv64/gpusim_guest_isa.h"
#endif

// Set once, before any second thread exists.
extern bool gpusim_omp_on_gpusim;
// Futex sleepers of the whole process; wakers skip the system call while there are none.
extern uint32_t gpusim_omp_sleepers;

void gpusim_omp_futex_wait(uint32_t* word, uint32_t value);
void gpusim_omp_futex_wake(uint32_t* word);

#define LOAD(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define FETCH_ADD(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define RELAXED(p) __atomic_load_n((p), __ATOMIC_RELAXED)

static inline bool compare_and_set_u32(uint32_t* p, uint32_t expected, uint32_t value) {
  return __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

static inline bool compare_and_set_u64(uint64_t* p, uint64_t expected, uint64_t value) {
  return __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

#ifdef GPUSIM_OMP_IN_GUEST
static inline uint32_t load_and_watch_u32(uint32_t* p) { return gpusim_isa_load_and_watch(p); }
static inline uint64_t load_and_watch_u64(uint64_t* p) {
  return gpusim_isa_load_and_watch_u64(p);
}
static inline void wait_for_event(void) { gpusim_wait_for_event(); }
static inline void pause_briefly(void) { gpusim_yield(); }
#else
static inline uint32_t load_and_watch_u32(uint32_t* p) { return LOAD(p); }
static inline uint64_t load_and_watch_u64(uint64_t* p) { return LOAD(p); }
static inline void wait_for_event(void) {}
static inline void gpusim_time_release(const void* place, uint64_t number) {
  (void)place;
  (void)number;
}
static inline void gpusim_time_acquire(const void* place, uint64_t number) {
  (void)place;
  (void)number;
}
static inline void pause_briefly(void) { __builtin_ia32_pause(); }
#endif

// Returns once *word differs from `value`; acquires. The caller looks again at what it waits for.
static inline void wait_while_u32(uint32_t* word, uint32_t value) {
  if (__builtin_expect(gpusim_omp_on_gpusim, true)) {
    while (load_and_watch_u32(word) == value) wait_for_event();
    return;
  }
  gpusim_omp_futex_wait(word, value);
}

// The same for 64 bits, of which a futex sees the low half: values must not be 2^32 apart.
static inline void wait_while_u64(uint64_t* word, uint64_t value) {
  if (__builtin_expect(gpusim_omp_on_gpusim, true)) {
    while (load_and_watch_u64(word) == value) wait_for_event();
    return;
  }
  gpusim_omp_futex_wait((uint32_t*)word, (uint32_t)value);
}

// Keeps the loads that follow behind a STORE: "I changed this; does anybody wait for it?" LDAR after
// STLR is enough for the architecture (ARM DDI 0487, B2.3.3 "Barrier-ordered-before"), but qemu-user
// on x86 lets the load overtake the store.
static inline void settle_store(void) {
  if (!__builtin_expect(gpusim_omp_on_gpusim, true)) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// To be called after the change of a word that others may wait on.
static inline void wake_u32(uint32_t* word) {
  if (__builtin_expect(gpusim_omp_on_gpusim, true)) return;
  settle_store();
  if (LOAD(&gpusim_omp_sleepers) != 0) gpusim_omp_futex_wake(word);
}
static inline void wake_u64(uint64_t* word) { wake_u32((uint32_t*)word); }

// Changes a word that only says "look again".
static inline void bump(uint32_t* word) {
  FETCH_ADD(word, 1);
  wake_u32(word);
}

#endif  // GPUSIM_OMP_WAIT_H
