// What the test programs of the guest library share. A failed check is counted and printed (the
// first few); gpusim_main returns test_finish(), which is 0 if no core has seen a failure.
#ifndef GPUSIM_GUEST_TEST_CHECK_H
#define GPUSIM_GUEST_TEST_CHECK_H

#include "gpusim_sync.h"

static uint32_t test_failures;

static inline void check_failed(const char* what, int line_number) {
  if (gpusim_fetch_add_u32(&test_failures, 1) >= 10) return;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, "FAILED on core ");
  gpusim_line_u64(&line, gpusim_core_id());
  gpusim_line_str(&line, ", line ");
  gpusim_line_u64(&line, (uint64_t)line_number);
  gpusim_line_str(&line, ": ");
  gpusim_line_str(&line, what);
  gpusim_line_write(&line, GPUSIM_STDERR);
}

#define CHECK(condition, what)                      \
  do {                                              \
    if (!(condition)) check_failed(what, __LINE__); \
  } while (0)

// All cores call it. Core 0 says that the test is right, if it is.
static inline int test_finish(const char* name) {
  gpusim_barrier();
  const uint32_t failures = gpusim_load_u32(&test_failures);
  if (failures == 0 && gpusim_core_id() == 0) {
    gpusim_line_t line;
    gpusim_line_start(&line);
    gpusim_line_str(&line, name);
    gpusim_line_str(&line, ": ok");
    gpusim_line_write(&line, GPUSIM_STDOUT);
  }
  return failures == 0 ? 0 : 1;
}

// A mixing function: equal inputs, equal "random" numbers.
static inline uint32_t test_random(uint32_t x) {
  x ^= x >> 16;
  x *= UINT32_C(0x85EBCA6B);
  x ^= x >> 13;
  x *= UINT32_C(0xC2B2AE35);
  x ^= x >> 16;
  return x;
}

#endif  // GPUSIM_GUEST_TEST_CHECK_H
