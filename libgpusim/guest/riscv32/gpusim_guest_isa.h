// The side of gpusim_guest.h for RISC-V of 32 bits.
//
// There are no atomic instructions on 64 bits: the compiler calls functions of atomic64.c, which take
// a lock. All accesses to such a word that may meet must be atomic, loads and stores, too.
#ifndef GPUSIM_GUEST_ISA_H
#define GPUSIM_GUEST_ISA_H

#include <stdint.h>

#include "../riscv/gpusim_guest_common.h"
#undef GPUSIM_RISCV_FETCH

// These hints put the core's number, and the number of cores, into the register that they read:
// elsewhere 0 stays. They never change, so the reads may be moved and merged.
static inline uint32_t gpusim_core_id(void) {
  uint32_t id = 0;
  __asm__("slti zero, %0, 0x6c0" : "+r"(id));
  return id;
}

static inline uint32_t gpusim_core_count(void) {
  uint32_t count = 0;
  __asm__("slti zero, %0, 0x6c5" : "+r"(count));
  return count == 0 ? 1 : count;
}

static inline void gpusim_wait_while_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_isa_load_and_watch(place) == value) gpusim_wait_for_event();
}

static inline void gpusim_wait_until_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_isa_load_and_watch(place) != value) gpusim_wait_for_event();
}

// No load watches 64 bits.
static inline void gpusim_wait_while_equal_u64(const uint64_t* place, uint64_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) == value) gpusim_yield();
}

static inline void gpusim_wait_until_equal_u64(const uint64_t* place, uint64_t value) {
  while (__atomic_load_n(place, __ATOMIC_ACQUIRE) != value) gpusim_yield();
}

#endif  // GPUSIM_GUEST_ISA_H
