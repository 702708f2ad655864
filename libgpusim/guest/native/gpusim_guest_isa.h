// The native side of gpusim_guest.h: threads of the host play the cores.
#ifndef GPUSIM_GUEST_ISA_H
#define GPUSIM_GUEST_ISA_H

#include <sched.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
extern __thread uint32_t gpusim_native_core_id;
extern uint32_t gpusim_native_core_count;
#ifdef __cplusplus
}
#endif

static inline uint32_t gpusim_core_id(void) { return gpusim_native_core_id; }
static inline uint32_t gpusim_core_count(void) { return gpusim_native_core_count; }

static inline void gpusim_time_release(const void* place, uint64_t number) {
  (void)place;
  (void)number;
}
static inline void gpusim_time_acquire(const void* place, uint64_t number) {
  (void)place;
  (void)number;
}

static inline void gpusim_wait_while_equal(const uint32_t* place, uint32_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) == value) sched_yield();
}

static inline void gpusim_wait_until_equal(const uint32_t* place, uint32_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) != value) sched_yield();
}

static inline void gpusim_wait_while_equal_u64(const uint64_t* place, uint64_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) == value) sched_yield();
}

static inline void gpusim_wait_until_equal_u64(const uint64_t* place, uint64_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) != value) sched_yield();
}

// A wait may end for no reason.
static inline void gpusim_wait_for_event(void) { sched_yield(); }
static inline void gpusim_yield(void) { sched_yield(); }
static inline void gpusim_signal_event(void) {}

#endif  // GPUSIM_GUEST_ISA_H
