// All cores add to one word again and again, until the one in the middle has succeeded. All execute
// the same instructions: nothing but who succeeds tells them apart.
#include <stdint.h>

#include "gpusim_guest.h"

static volatile uint32_t word, is_over;

static int try_to_add(volatile uint32_t* p) {
  uint32_t value, failed;
  __asm__ volatile(
      "ldxr %w0, [%2]\n\t"
      "add %w0, %w0, #1\n\t"
      "stxr %w1, %w0, [%2]"
      : "=&r"(value), "=&r"(failed)
      : "r"(p)
      : "memory");
  return !failed;
}

int gpusim_main(void) {
  const int is_the_one = gpusim_core_id() == gpusim_core_count() / 2;
  gpusim_barrier();
  while (!is_over)
    if (try_to_add(&word) & is_the_one) is_over = 1;
  return 0;
}
