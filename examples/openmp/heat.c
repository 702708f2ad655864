// Heat in a square plate, an ordinary OpenMP program:  heat [SIZE [STEPS]]
// Prints the same on any number of threads: each cell is computed by one of them, and the sum is of integers.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

int main(int argc, char** argv) {
  const long size = argc > 1 ? atol(argv[1]) : 512;
  const int steps = argc > 2 ? atoi(argv[2]) : 60;
  if (size < 3 || size > 16384 || steps < 0) {
    fprintf(stderr, "usage: heat [SIZE [STEPS]], SIZE from 3 to 16384\n");
    return 2;
  }
  float* now = calloc((size_t)(size * size), sizeof *now);
  float* next = calloc((size_t)(size * size), sizeof *next);
  if (!now || !next) {
    fprintf(stderr, "heat: no memory for %ld x %ld cells\n", size, size);
    return 2;
  }
  for (long x = 0; x < size; ++x) now[x] = next[x] = 100;

  enum { kRows = 16 };
  const long strips = (size + kRows - 1) / kRows;
  uint64_t sum = 0;
#pragma omp parallel
  {
    float *from = now, *to = next;
    for (int step = 0; step < steps; ++step) {
      // Strips of some cells, one below the other: neighbouring threads compute neighbouring columns.
#pragma omp for schedule(static, 1)
      for (long strip = 0; strip < strips * size; ++strip) {
        const long x = strip % size, first = strip / size * kRows;
        if (x == 0 || x == size - 1) continue;
        for (long y = first > 0 ? first : 1; y < first + kRows && y < size - 1; ++y) {
          const float* at = from + y * size + x;
          to[y * size + x] = 0.25f * (at[-1] + at[1] + at[-size] + at[size]);
        }
      }
      float* other = from;
      from = to;
      to = other;
    }
#pragma omp for schedule(static, 1) reduction(+ : sum)
    for (long i = 0; i < size * size; ++i) sum += bits_of(from[i]) * (uint64_t)(i % 31 + 1);
  }
  const float* last = steps % 2 ? next : now;
  printf("plate of %ld x %ld after %d steps: %.4f degrees in the middle of row 2, sum %016" PRIx64
         "\n", size, size, steps, (double)last[size + size / 2], sum);
  free(now);
  free(next);
  return 0;
}
