// Cores with unequal work and a barrier between two such parts.
#ifdef __riscv
#include "libgpusim/guest/riscv64/gpusim_guest_isa.h"
#define SPEND "addi t0, t0, 1"
#define DIVIDE "divu t0, t0, t1"
#define SCRATCH "t0"
#else
#include "libgpusim/guest/aarch64/gpusim_guest_isa.h"
#define SPEND "add x9, x9, #1"
#define DIVIDE "udiv x9, x9, x10"
#define SCRATCH "x9"
#endif

static uint32_t arrived, phase;

static void spend(long n) {
  for (; n > 0; --n) __asm__ volatile(SPEND : : : SCRATCH);
}

static void barrier(uint32_t cores) {
  const uint32_t now = __atomic_load_n(&phase, __ATOMIC_RELAXED);
  gpusim_time_release(&phase, now);
  if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == cores) {
    arrived = 0;
    __atomic_store_n(&phase, now + 1, __ATOMIC_RELEASE);
  } else {
    gpusim_wait_while_equal(&phase, now);
  }
  gpusim_time_acquire(&phase, now);
}

// In the first part core 1 is slow, in the second core 2.
void work(long core, long cores, long n) {
  spend(core == 1 ? n : 0);
  barrier((uint32_t)cores);
  spend(core == 2 ? n : 0);
  barrier((uint32_t)cores);
}

void divide(void) { __asm__ volatile(DIVIDE "\n\t" DIVIDE : : : SCRATCH); }
