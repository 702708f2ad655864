// What the kernels share: data, and a check of a parallel result against the sequential one.
#ifndef GPUSIM_TESTS_OPENMP_KERNEL_H
#define GPUSIM_TESTS_OPENMP_KERNEL_H

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Reproducible values in [0, 1) with few bits, so that sums of products are exact for a while.
static inline double value(uint32_t i, uint32_t j) {
  uint32_t h = i * 2654435761u + j * 40503u + 12345u;
  h ^= h >> 15;
  return (double)(h % 1024) / 1024.0;
}

// Prints whether both are alike bit by bit, and a digest.
static inline int report(const char* name, const void* parallel, const void* sequential,
                         size_t size) {
  uint64_t digest = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i)
    digest = (digest ^ ((const unsigned char*)parallel)[i]) * 1099511628211u;
  const int same = memcmp(parallel, sequential, size) == 0;
  printf("%s: %s, digest %016llx\n", name, same ? "as in sequence" : "DIFFERS",
         (unsigned long long)digest);
  return same ? 0 : 1;
}

#endif  // GPUSIM_TESTS_OPENMP_KERNEL_H
