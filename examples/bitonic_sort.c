// Sorts 2^LOG2_N numbers in Batcher's bitonic network.
//
// Core c runs comparators c, c + P, ... of each step; from a distance of 64 elements on, adjacent
// cores compare adjacent elements. The exchange is a selection, not a branch. A barrier ends each
// of the LOG2_N * (LOG2_N + 1) / 2 steps.
#include "example.h"
#include "gpusim_sync.h"

#ifndef LOG2_N
#define LOG2_N 16
#endif
#define N (UINT32_C(1) << LOG2_N)

static uint32_t a[N];
static example_result_t result;

// Equal sums of this over input and output: the output is a permutation of the input.
static uint64_t fingerprint(uint32_t value) { return example_share(0, value); }

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  uint64_t sum = 0;
  for (uint32_t i = id; i < N; i += count) {
    a[i] = example_random(i);
    sum += fingerprint(a[i]);
  }
  const uint64_t input_sum = gpusim_sum_u64(sum);  // also a barrier

  for (uint32_t run = 2; run <= N; run *= 2) {
    for (uint32_t distance = run / 2; distance != 0; distance /= 2) {
      for (uint32_t i = id; i < N / 2; i += count) {
        const uint32_t low = 2 * i - (i & (distance - 1));
        const uint32_t high = low + distance;
        const uint32_t x = a[low];
        const uint32_t y = a[high];
        // Runs alternate between ascending and descending; the last one ascends.
        const int swap = (x > y) == ((low & run) == 0);
        a[low] = swap ? y : x;
        a[high] = swap ? x : y;
      }
      gpusim_barrier();
    }
  }

  uint64_t checksum = 0;
  uint32_t errors = 0;
  sum = 0;
  for (uint32_t i = id; i < N; i += count) {
    sum += fingerprint(a[i]);
    checksum += example_share(i, a[i]);
    if (i + 1 < N) errors += a[i] > a[i + 1];
  }
  if (gpusim_sum_u64(sum) != input_sum && id == 0) ++errors;

  example_report(&result, checksum, errors);
  return example_finish(&result, "bitonic_sort", N, GPUSIM_STDOUT);
}
