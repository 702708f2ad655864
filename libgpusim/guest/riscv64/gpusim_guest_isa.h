// The RISC-V side of gpusim_guest.h.
#ifndef GPUSIM_GUEST_ISA_H
#define GPUSIM_GUEST_ISA_H

#include <stdint.h>

// SLTI to x0 is a hint that the architecture leaves to custom use (unprivileged manual, 2.9).
// gpusim takes five of them; other processors and qemu-riscv64 do nothing. The first puts (core
// count << 32) | core id into the register that it reads: elsewhere 0 stays, one core, number 0.
// The word never changes, so the read may be moved and merged.
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

// The load-reserved marks the word that this core waits for, so the store of another core is by
// itself an event that ends the wait: there is no gap between looking and sleeping in which the
// store could be missed.
static inline uint32_t gpusim_isa_load_and_watch(const uint32_t* place) {
  uint32_t value;
  __asm__ volatile("lr.w.aq %0, %1" : "=r"(value) : "A"(*place) : "memory");
  return value;
}

static inline uint64_t gpusim_isa_load_and_watch_u64(const uint64_t* place) {
  uint64_t value;
  __asm__ volatile("lr.d.aq %0, %1" : "=r"(value) : "A"(*place) : "memory");
  return value;
}

static inline void gpusim_wait_for_event(void) {
  __asm__ volatile("slti zero, zero, 0x6c1" ::: "memory");
}
static inline void gpusim_signal_event(void) {
  __asm__ volatile("slti zero, zero, 0x6c2" ::: "memory");
}
// PAUSE, which older assemblers do not know.
static inline void gpusim_yield(void) { __asm__ volatile(".word 0x0100000f" ::: "memory"); }

static inline void gpusim_time_release(const void* place, uint64_t number) {
  register const void* a0 __asm__("a0") = place;
  register uint64_t a1 __asm__("a1") = number;
  __asm__ volatile("slti zero, zero, 0x6c3" : : "r"(a0), "r"(a1) : "memory");
}
static inline void gpusim_time_acquire(const void* place, uint64_t number) {
  register const void* a0 __asm__("a0") = place;
  register uint64_t a1 __asm__("a1") = number;
  __asm__ volatile("slti zero, zero, 0x6c4" : : "r"(a0), "r"(a1) : "memory");
}

#include "../gpusim_watch.h"

#define GPUSIM_ISA_HAS_FETCH_MIN_MAX
#define GPUSIM_RISCV_FETCH(name, type, instruction)                 \
  static inline type gpusim_fetch_##name(type* place, type value) { \
    type before;                                                    \
    __asm__ volatile(instruction ".aqrl %0, %2, %1"                 \
                     : "=r"(before), "+A"(*place)                   \
                     : "r"(value)                                   \
                     : "memory");                                   \
    return before;                                                  \
  }
GPUSIM_RISCV_FETCH(min_u32, uint32_t, "amominu.w")
GPUSIM_RISCV_FETCH(max_u32, uint32_t, "amomaxu.w")
GPUSIM_RISCV_FETCH(min_i32, int32_t, "amomin.w")
GPUSIM_RISCV_FETCH(max_i32, int32_t, "amomax.w")
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

// The Linux system-call convention: number in a7, arguments in a0 to a5, result in a0.
static inline long gpusim_syscall3(long number, long a, long b, long c) {
  register long a7 __asm__("a7") = number;
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
  return a0;
}

// start.S leaves this core's initial stack pointer in the thread pointer.
static inline uint64_t* gpusim_initial_stack(void) {
  uint64_t* stack;
  __asm__("mv %0, tp" : "=r"(stack));
  return stack;
}

enum { GPUSIM_SYS_WRITE = 64, GPUSIM_SYS_EXIT = 93, GPUSIM_SYS_EXIT_GROUP = 94 };

#endif  // GPUSIM_GUEST_ISA_H
