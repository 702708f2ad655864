// Core 0 works, all others wait for it.
#include "gpusim_guest.h"

#ifndef TURNS
#define TURNS 200000000
#endif

static uint32_t done;

int gpusim_main(void) {
  if (gpusim_core_id() != 0) {
    gpusim_wait_until_equal(&done, 1);
    return 0;
  }
  uint64_t x = 1;
  for (uint64_t i = 0; i < TURNS; ++i) {
    x = x * UINT64_C(0x5851F42D4C957F2D) + i;
    __asm__ volatile("" : : "r"(x));  // one turn after the other
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  gpusim_wake_all();
  return 0;
}
