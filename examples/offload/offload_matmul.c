// C = A x B in single precision, offloaded. --size N: N x N matrices.
//
// Core c computes elements c, c + P, ...: neighbouring cores read one row of A and neighbouring
// elements of B.
#include <stdio.h>

#include "offload_example.h"

typedef struct {
  uint64_t n;
  float elements[];  // A, B, C
} job_t;

static size_t plan(example_options_t* options) {
  if (options->size > 8192) {
    fprintf(stderr, "offload_matmul: --size: at most 8192\n");
    return 0;
  }
  return sizeof(job_t) + 3 * options->size * options->size * sizeof(float);
}

static void prepare(void* memory, const example_options_t* options) {
  job_t* const job = memory;
  job->n = options->size;
  const uint64_t count = 2 * job->n * job->n;
  for (uint64_t i = 0; i < count; ++i) job->elements[i] = example_random((uint32_t)i);
}

void matmul_kernel(void* memory, uint64_t core, uint64_t cores) {
  job_t* const job = memory;
  const uint64_t n = job->n;
  const float* const a = job->elements;
  const float* const b = a + n * n;
  float* const c = job->elements + 2 * n * n;
  for (uint64_t e = core; e < n * n; e += cores) {
    const float* const row = a + e / n * n;
    const float* const column = b + e % n;
    float sum = 0;
    for (uint64_t k = 0; k < n; ++k) sum += row[k] * column[k * n];
    c[e] = sum;
  }
}

static const void* results(const void* memory, size_t* size_bytes) {
  const job_t* const job = memory;
  *size_bytes = job->n * job->n * sizeof(float);
  return job->elements + 2 * job->n * job->n;
}

int main(int argc, char** argv) {
  static const example_t example = {.name = "matmul",
                                    .default_size = 256,
                                    .plan = plan,
                                    .prepare = prepare,
                                    .kernel = matmul_kernel,
                                    .kernel_name = "matmul_kernel",
                                    .results = results};
  return example_run(&example, argc, argv);
}
