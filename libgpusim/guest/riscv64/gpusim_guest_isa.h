// The side of gpusim_guest.h for RISC-V of 64 bits.
#ifndef GPUSIM_GUEST_ISA_H
#define GPUSIM_GUEST_ISA_H

#include <stdint.h>

#include "../riscv/gpusim_guest_common.h"

// This hint puts (core count << 32) | core id into the register that it reads: elsewhere 0 stays, one
// core, number 0. The word never changes, so the read may be moved and merged.
static inline uint64_t gpusim_riscv_core_word(void) {
  uint64_t word = 0;
  __asm__("slti zero, %0, 0x6c0" : "+r"(word));
  return word;
}

static inline uint32_t gpusim_core_id(void) { return (uint32_t)gpusim_riscv_core_word(); }

static inline uint32_t gpusim_core_count(void) {
  const uint32_t count = (uint32_t)(gpusim_riscv_core_word() >> 32);
  return count == 0 ? 1 : count;
}

static inline uint64_t gpusim_isa_load_and_watch_u64(const uint64_t* place) {
  uint64_t value;
  __asm__ volatile("lr.d.aq %0, %1" : "=r"(value) : "A"(*place) : "memory");
  return value;
}

#include "../gpusim_watch.h"

#define GPUSIM_ISA_HAS_FETCH_MIN_MAX_64
GPUSIM_RISCV_FETCH(min_u64, uint64_t, "amominu.d")
GPUSIM_RISCV_FETCH(max_u64, uint64_t, "amomaxu.d")
GPUSIM_RISCV_FETCH(min_i64, int64_t, "amomin.d")
GPUSIM_RISCV_FETCH(max_i64, int64_t, "amomax.d")
#undef GPUSIM_RISCV_FETCH

// ---- For libgpusim/openmp

static inline uint64_t gpusim_isa_stack_pointer(void) {
  uint64_t sp;
  __asm__("mv %0, sp" : "=r"(sp));
  return sp;
}

// `below` if a < b, else `otherwise`, without a branch that would part cores in lockstep.
static inline void* gpusim_isa_select(uint64_t a, uint64_t b, void* below, void* otherwise) {
  uint64_t mask;
  __asm__("sltu %0, %1, %2\n\tneg %0, %0" : "=&r"(mask) : "r"(a), "r"(b));
  return (void*)(((uint64_t)below & mask) | ((uint64_t)otherwise & ~mask));
}

// The function never returns; a zero frame pointer and return address end backtraces here.
__attribute__((noreturn)) static inline void gpusim_isa_call_on_stack(uint64_t top,
                                                                      void (*function)(void*),
                                                                      void* argument) {
  register void* a0 __asm__("a0") = argument;
  register uint64_t t1 __asm__("t1") = top;
  register void (*t2)(void*) __asm__("t2") = function;
  __asm__ volatile(
      "mv sp, t1\n\t"
      "li s0, 0\n\t"
      "li ra, 0\n\t"
      "jr t2"
      :
      : "r"(a0), "r"(t1), "r"(t2)
      : "memory");
  __builtin_unreachable();
}

#endif  // GPUSIM_GUEST_ISA_H
