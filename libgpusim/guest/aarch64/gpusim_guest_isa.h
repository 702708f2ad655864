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
static inline uint32_t gpusim_aarch64_load_and_watch(const uint32_t* place) {
  uint32_t value;
  __asm__ volatile("ldaxr %w0, %1" : "=r"(value) : "Q"(*place) : "memory");
  return value;
}

static inline void gpusim_wait_while_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_aarch64_load_and_watch(place) == value) __asm__ volatile("wfe" ::: "memory");
}

static inline void gpusim_wait_until_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_aarch64_load_and_watch(place) != value) __asm__ volatile("wfe" ::: "memory");
}

// Not needed on hardware (see above). It tells a simulator at which store waiting cores may go on.
static inline void gpusim_wake_all(void) { __asm__ volatile("sev" ::: "memory"); }

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
static inline uint64_t* gpusim_initial_stack(void) {
  uint64_t* stack;
  __asm__("mrs %0, tpidr_el0" : "=r"(stack));
  return stack;
}

enum { GPUSIM_SYS_WRITE = 64, GPUSIM_SYS_EXIT = 93, GPUSIM_SYS_EXIT_GROUP = 94 };

#endif  // GPUSIM_GUEST_ISA_H
