// Neighbouring cores do different things: core c plays role c % ROLES. In groups of neighbours at most
// one lane in ROLES is in use.
#include "gpusim_guest.h"

#ifndef ROLES
#define ROLES 8
#endif
#ifndef TURNS
#define TURNS 20000
#endif

#define ROLE(number, step)                                         \
  __attribute__((noinline)) static uint64_t role##number(uint64_t x) { \
    for (int i = 0; i < TURNS; ++i) {                              \
      step;                                                        \
      x ^= x >> 29;                                                \
      x += number;                                                 \
    }                                                              \
    return x;                                                      \
  }
ROLE(0, x *= UINT64_C(0x9E3779B97F4A7C15))
ROLE(1, x = x << 7 | x >> 57)
ROLE(2, x -= x >> 3)
ROLE(3, x ^= x << 11)
ROLE(4, x += x * x)
ROLE(5, x = ~x + (x >> 9))
ROLE(6, x ^= x >> 17; x *= 5)
ROLE(7, x += x << 21)

static uint64_t sum;

int gpusim_main(void) {
  static uint64_t (*const kRoles[])(uint64_t) = {role0, role1, role2, role3,
                                                 role4, role5, role6, role7};
  const uint32_t id = gpusim_core_id();
  gpusim_fetch_add_u64(&sum, kRoles[id % ROLES](id + 1));
  gpusim_barrier();
  if (id != 0) return 0;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, "roles ");
  gpusim_line_hex(&line, sum, 16);
  return gpusim_line_write(&line, GPUSIM_STDOUT);
}
