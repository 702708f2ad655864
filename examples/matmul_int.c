// C = A x B in 32-bit integers.
//
// Core c computes elements c, c + P, c + 2P ... of C: adjacent cores have adjacent columns, so in
// the inner loop a row of A is the same word for all of them and a row of B is contiguous.
// MATMUL_TRANSPOSED stores B by columns instead: the same work in the order that suits one core
// (both operands contiguous along k); only for comparison with single-core emulators.
#include "example.h"

#ifndef N
#define N 192
#endif

static int32_t a[N * N];
static int32_t b[N * N];
static int32_t c[N * N];
static int32_t column_sum_a[N];
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
    a[e] = (int32_t)(example_random(e) & 0xffff) - 0x8000;
    b[e] = (int32_t)(example_random(e + N * N) & 0xffff) - 0x8000;
  }
  gpusim_barrier();

  uint64_t checksum = 0;
  for (uint32_t e = id; e < N * N; e += count) {
    const uint32_t row = e / N;
    const uint32_t column = e % N;
    uint32_t sum = 0;  // unsigned: it may wrap
    for (uint32_t k = 0; k < N; ++k) sum += (uint32_t)a[row * N + k] * (uint32_t)B(k, column);
    c[e] = (int32_t)sum;
    checksum += example_share(e, sum);
  }

  // Independent check: each column of C must add up to (column sums of A) x (column of B).
  for (uint32_t k = id; k < N; k += count) {
    uint32_t sum = 0;
    for (uint32_t row = 0; row < N; ++row) sum += (uint32_t)a[row * N + k];
    column_sum_a[k] = (int32_t)sum;
  }
  gpusim_barrier();
  uint32_t errors = 0;
  for (uint32_t column = id; column < N; column += count) {
    uint32_t expected = 0;
    uint32_t found = 0;
    for (uint32_t k = 0; k < N; ++k) {
      expected += (uint32_t)column_sum_a[k] * (uint32_t)B(k, column);
      found += (uint32_t)c[k * N + column];
    }
    errors += expected != found;
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "matmul_int", N, GPUSIM_STDOUT);
}
