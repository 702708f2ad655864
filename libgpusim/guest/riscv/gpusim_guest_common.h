// What RISC-V of 64 and of 32 bits share: <isa>/gpusim_guest_isa.h include this.
//
// SLTI to x0 is a hint that the architecture leaves to custom use (unprivileged manual, 2.9).
// gpusim takes some of them; other processors and qemu-user do nothing.
#ifndef GPUSIM_GUEST_COMMON_H
#define GPUSIM_GUEST_COMMON_H

#include <stdint.h>

// The load-reserved marks the word that this core waits for, so the store of another core is by
// itself an event that ends the wait: there is no gap between looking and sleeping in which the
// store could be missed.
static inline uint32_t gpusim_isa_load_and_watch(const uint32_t* place) {
  uint32_t value;
  __asm__ volatile("lr.w.aq %0, %1" : "=r"(value) : "A"(*place) : "memory");
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
  register uintptr_t a1 __asm__("a1") = (uintptr_t)number;
  __asm__ volatile("slti zero, zero, 0x6c3" : : "r"(a0), "r"(a1) : "memory");
}
static inline void gpusim_time_acquire(const void* place, uint64_t number) {
  register const void* a0 __asm__("a0") = place;
  register uintptr_t a1 __asm__("a1") = (uintptr_t)number;
  __asm__ volatile("slti zero, zero, 0x6c4" : : "r"(a0), "r"(a1) : "memory");
}

#define GPUSIM_ISA_HAS_FETCH_MIN_MAX_32
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
static inline uintptr_t* gpusim_initial_stack(void) {
  uintptr_t* stack;
  __asm__("mv %0, tp" : "=r"(stack));
  return stack;
}

enum { GPUSIM_SYS_WRITE = 64, GPUSIM_SYS_EXIT = 93, GPUSIM_SYS_EXIT_GROUP = 94 };

#endif  // GPUSIM_GUEST_COMMON_H
