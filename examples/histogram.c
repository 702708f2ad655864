// Histogram with atomic counters: all cores add to the same 256 bins.
//
// The samples are a sum of two dice of 128 faces, so that the middle bins are contended.
#include "example.h"
#include "gpusim_sync.h"

#ifndef N
#define N (UINT32_C(1) << 20)
#endif
enum { kBins = 256, kFaces = 128 };

static uint8_t sample[N];
static uint32_t bin[kBins];
static example_result_t result;

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  uint64_t sum = 0;
  uint64_t squares = 0;
  for (uint32_t i = id; i < N; i += count) {
    const uint32_t dice = example_random(i);
    const uint32_t value = dice % kFaces + (dice >> 16) % kFaces;
    sample[i] = (uint8_t)value;
    sum += value;
    squares += value * value;
  }
  const uint64_t sum_of_samples = gpusim_sum_u64(sum);  // also a barrier
  const uint64_t sum_of_squares = gpusim_sum_u64(squares);

  for (uint32_t i = id; i < N; i += count) gpusim_count_u32(&bin[sample[i]], 1);
  gpusim_barrier();

  uint64_t checksum = 0;
  uint32_t errors = 0;
  for (uint32_t v = id; v < kBins; v += count) checksum += example_share(v, bin[v]);
  // Independent check: the counts, and the first two moments, which the cores summed apart.
  if (id == 0) {
    uint64_t total = 0;
    sum = 0;
    squares = 0;
    for (uint32_t v = 0; v < kBins; ++v) {
      const uint64_t n = bin[v];
      total += n;
      sum += n * v;
      squares += n * v * v;
    }
    errors += total != N;
    errors += sum != sum_of_samples;
    errors += squares != sum_of_squares;
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "histogram", N, GPUSIM_STDOUT);
}
