// The triad of STREAM (McCalpin, 1995): a[i] = b[i] + q c[i], each core on a part of its own. What
// memory can bring limits it. The region of interest is all rounds but the first, which warms up.
#include "example.h"
#include "gpusim_sync.h"

#ifndef N
#define N UINT32_C(2000000)  // no power of two: arrays would meet in the same sets of caches
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif

static double a[N], b[N], c[N];
static example_result_t result;

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();
  const uint32_t begin = (uint32_t)((uint64_t)N * id / count);
  const uint32_t end = (uint32_t)((uint64_t)N * (id + 1) / count);
  for (uint32_t i = begin; i < end; ++i) {
    b[i] = (double)(i % 1024);
    c[i] = (double)(i % 4096);
  }
  const double q = 3;
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    gpusim_barrier();
    if (round == 1) gpusim_roi_begin();
    for (uint32_t i = begin; i < end; ++i) a[i] = b[i] + q * c[i];
    // Else the compiler might do all rounds at once.
    __asm__ volatile("" : : : "memory");
  }
  gpusim_barrier();
  gpusim_roi_end();

  uint64_t checksum = 0;
  uint32_t errors = 0;
  for (uint32_t i = begin; i < end; ++i) {
    const uint64_t expected = (uint64_t)(i % 1024) + 3 * (uint64_t)(i % 4096);
    errors += a[i] != (double)expected;
    checksum += example_share(i, (uint64_t)a[i]);
  }
  example_report(&result, checksum, errors);
  return example_finish(&result, "stream", N, GPUSIM_STDOUT);
}
