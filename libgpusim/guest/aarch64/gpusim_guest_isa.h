// The AArch64 side of gpusim_guest.h.
#ifndef GPUSIM_GUEST_ISA_H
#define GPUSIM_GUEST_ISA_H

#include <stdint.h>

// gpusim keeps (core count << 32) | core id in TPIDRRO_EL0, which user code can read and not write.
// Linux (without KPTI's use of it as a scratch register, which it clears) and qemu-user leave it 0:
// one core, number 0. The register never changes, so the read may be moved and merged.
static inline uint64_t gpusim_aarch64_core_word(void) {
  uint64_t word;
  __asm__("mrs %0, tpidrro_el0" : "=r"(word));
  return word;
}

static inline uint32_t gpusim_core_id(void) { return (uint32_t)gpusim_aarch64_core_word(); }

static inline uint32_t gpusim_core_count(void) {
  const uint32_t count = (uint32_t)(gpusim_aarch64_core_word() >> 32);
  return count == 0 ? 1 : count;
}

// The exclusive load arms this core's monitor on the word that it waits for, so the store of
// another core is by itself an event that ends WFE (Arm ARM D1.6, "Wait for Event"): there is no
// gap between looking and sleeping in which the store could be missed, with or without SEV.
static inline uint32_t gpusim_isa_load_and_watch(const uint32_t* place) {
  uint32_t value;
  __asm__ volatile("ldaxr %w0, %1" : "=r"(value) : "Q"(*place) : "memory");
  return value;
}

static inline uint64_t gpusim_isa_load_and_watch_u64(const uint64_t* place) {
  uint64_t value;
  __asm__ volatile("ldaxr %0, %1" : "=r"(value) : "Q"(*place) : "memory");
  return value;
}

static inline void gpusim_wait_for_event(void) { __asm__ volatile("wfe" ::: "memory"); }
static inline void gpusim_yield(void) { __asm__ volatile("yield" ::: "memory"); }
static inline void gpusim_signal_event(void) { __asm__ volatile("sev" ::: "memory"); }

// Hints that no processor knows, so they do nothing, unless gpusim keeps simulated time.
static inline void gpusim_time_release(const void* place, uint64_t number) {
  register const void* x0 __asm__("x0") = place;
  register uint64_t x1 __asm__("x1") = number;
  __asm__ volatile("hint #96" : : "r"(x0), "r"(x1) : "memory");
}
static inline void gpusim_time_acquire(const void* place, uint64_t number) {
  register const void* x0 __asm__("x0") = place;
  register uint64_t x1 __asm__("x1") = number;
  __asm__ volatile("hint #97" : : "r"(x0), "r"(x1) : "memory");
}

#include "../gpusim_watch.h"

// Minimum and maximum are single instructions from Armv8.1 on; GCC has no built-in functions for
// them.
#ifdef __ARM_FEATURE_ATOMICS
#define GPUSIM_ISA_HAS_FETCH_MIN_MAX_32
#define GPUSIM_ISA_HAS_FETCH_MIN_MAX_64
#define GPUSIM_AARCH64_FETCH(name, type, instruction, width)        \
  static inline type gpusim_fetch_##name(type* place, type value) { \
    type before;                                                    \
    __asm__ volatile(instruction " %" width "2, %" width "0, %1"    \
                     : "=r"(before), "+Q"(*place)                   \
                     : "r"(value)                                   \
                     : "memory");                                   \
    return before;                                                  \
  }
GPUSIM_AARCH64_FETCH(min_u32, uint32_t, "lduminal", "w")
GPUSIM_AARCH64_FETCH(max_u32, uint32_t, "ldumaxal", "w")
GPUSIM_AARCH64_FETCH(min_i32, int32_t, "ldsminal", "w")
GPUSIM_AARCH64_FETCH(max_i32, int32_t, "ldsmaxal", "w")
GPUSIM_AARCH64_FETCH(min_u64, uint64_t, "lduminal", "x")
GPUSIM_AARCH64_FETCH(max_u64, uint64_t, "ldumaxal", "x")
GPUSIM_AARCH64_FETCH(min_i64, int64_t, "ldsminal", "x")
GPUSIM_AARCH64_FETCH(max_i64, int64_t, "ldsmaxal", "x")
#undef GPUSIM_AARCH64_FETCH
#endif

// ---- For libgpusim/openmp

static inline uint64_t gpusim_isa_stack_pointer(void) {
  uint64_t sp;
  __asm__("mov %0, sp" : "=r"(sp));
  return sp;
}

// `below` if a < b, else `otherwise`, without a branch that would part cores in lockstep.
static inline void* gpusim_isa_select(uint64_t a, uint64_t b, void* below, void* otherwise) {
  void* result = otherwise;
  __asm__("cmp %1, %2\n\tcsel %0, %3, %0, lo" : "+r"(result) : "r"(a), "r"(b), "r"(below) : "cc");
  return result;
}

// The function never returns; a zero frame pointer and return address end backtraces here.
__attribute__((noreturn)) static inline void gpusim_isa_call_on_stack(uint64_t top,
                                                                      void (*function)(void*),
                                                                      void* argument) {
  register void* x0 __asm__("x0") = argument;
  register uint64_t x9 __asm__("x9") = top;
  register void (*x10)(void*) __asm__("x10") = function;
  __asm__ volatile(
      "mov sp, x9\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "br x10"
      :
      : "r"(x0), "r"(x9), "r"(x10)
      : "memory");
  __builtin_unreachable();
}

// The Linux system-call convention: number in x8, arguments in x0 to x5, result in x0.
static inline long gpusim_syscall3(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}

// start.S leaves this core's initial stack pointer in the thread pointer register.
static inline uintptr_t* gpusim_initial_stack(void) {
  uintptr_t* stack;
  __asm__("mrs %0, tpidr_el0" : "=r"(stack));
  return stack;
}

enum { GPUSIM_SYS_WRITE = 64, GPUSIM_SYS_EXIT = 93, GPUSIM_SYS_EXIT_GROUP = 94 };

#endif  // GPUSIM_GUEST_ISA_H
