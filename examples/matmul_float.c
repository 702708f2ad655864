// C = A x B in single precision. Work division as in matmul_int.c.
#include "example.h"

#ifndef N
#define N 192
#endif
#ifndef TILE  // columns that a core computes side by side, a divisor of N
#define TILE 1
#endif

static float a[N * N];
static float b[N * N];
static float c[N * N];
static double column_sum_a[N];
static example_result_t result;

#ifdef MATMUL_TRANSPOSED
#define B(k, col) b[(col)*N + (k)]
#else
#define B(k, col) b[(k)*N + (col)]
#endif

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  for (uint32_t e = id; e < N * N; e += count) {
    a[e] = example_random_float(e);
    b[e] = example_random_float(e + N * N);
  }
  gpusim_barrier();

  uint64_t checksum = 0;
  for (uint32_t e = TILE * id; e < N * N; e += TILE * count) {
    const uint32_t row = e / N;
    const uint32_t column = e % N;
    float sum[TILE] = {0};
    for (uint32_t k = 0; k < N; ++k)
      for (uint32_t j = 0; j < TILE; ++j) sum[j] += a[row * N + k] * B(k, column + j);
    for (uint32_t j = 0; j < TILE; ++j) {
      c[e + j] = sum[j];
      checksum += example_share(e + j, example_float_bits(sum[j]));
    }
  }

  // Independent check, in double: each column of C must add up to (column sums of A) x (column of
  // B), but for rounding. An element is a sum of N products below 1, so rounding errs by at most
  // N/2 * N * 2^-24 in each, and far less in practice.
  for (uint32_t k = id; k < N; k += count) {
    double sum = 0;
    for (uint32_t row = 0; row < N; ++row) sum += (double)a[row * N + k];
    column_sum_a[k] = sum;
  }
  gpusim_barrier();
  uint32_t errors = 0;
  for (uint32_t column = id; column < N; column += count) {
    double expected = 0;
    double found = 0;
    for (uint32_t k = 0; k < N; ++k) {
      expected += column_sum_a[k] * (double)B(k, column);
      found += (double)c[k * N + column];
    }
    const double tolerance = (double)N * N / 16777216.0;
    errors += !(__builtin_fabs(expected - found) <= tolerance);
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "matmul_float", N, GPUSIM_STDOUT);
}
