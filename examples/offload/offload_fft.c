// A Fourier transform of --size N complex numbers (a power of two), offloaded, with a barrier
// between the steps.
//
// Stockham's self-sorting radix-2 form, as examples/fft.c.
#include <stdio.h>

#include "examples/trigonometry.h"
#include "offload_example.h"

typedef struct {
  uint64_t n;
  uint64_t steps;
  // n each: re and im of two signals, which change places with each step; then n/2 cosines and
  // sines.
  float numbers[];
} job_t;

static size_t plan(example_options_t* options) {
  const uint64_t n = options->size;
  if (n < 8 || n > 1u << 24 || (n & (n - 1)) != 0) {
    fprintf(stderr, "offload_fft: --size: a power of two from 8 to 16777216\n");
    return 0;
  }
  return sizeof(job_t) + 5 * n * sizeof(float);
}

static void prepare(void* memory, const example_options_t* options) {
  job_t* const job = memory;
  const uint64_t n = options->size;
  job->n = n;
  job->steps = 0;
  for (uint64_t half = 1; half < n; half *= 2) ++job->steps;
  // The input lies in both signals: each run begins with the first.
  for (uint64_t i = 0; i < 2 * n; ++i) job->numbers[i] = example_random((uint32_t)i);
  for (uint64_t k = 0; k < n / 2; ++k) {
    const trig_t t = trig_turn((uint32_t)k, (uint32_t)n);
    job->numbers[4 * n + k] = (float)t.cos;
    job->numbers[4 * n + n / 2 + k] = (float)t.sin;
  }
}

void fft_kernel(void* memory, uint64_t core, uint64_t cores) {
  job_t* const job = memory;
  const uint64_t n = job->n;
  float* from = job->numbers;
  float* to = job->numbers + 2 * n;
  const float* const cosines = job->numbers + 4 * n;
  const float* const sines = cosines + n / 2;
  for (uint64_t half = 1; half < n; half *= 2) {
    const uint64_t stride = n / 2 / half;
    for (uint64_t i = core; i < n / 2; i += cores) {
      const uint64_t k = i & (half - 1);
      const uint64_t out = 2 * i - k;
      const float w_re = cosines[k * stride];
      const float w_im = -sines[k * stride];
      const float b_re = from[i + n / 2];
      const float b_im = from[n + i + n / 2];
      const float t_re = b_re * w_re - b_im * w_im;
      const float t_im = b_re * w_im + b_im * w_re;
      const float a_re = from[i];
      const float a_im = from[n + i];
      to[out] = a_re + t_re;
      to[n + out] = a_im + t_im;
      to[out + half] = a_re - t_re;
      to[n + out + half] = a_im - t_im;
    }
    example_barrier(cores);
    float* const swap = from;
    from = to;
    to = swap;
  }
}

static const void* results(const void* memory, size_t* size_bytes) {
  const job_t* const job = memory;
  *size_bytes = 2 * job->n * sizeof(float);
  return job->numbers + (job->steps % 2 == 0 ? 0 : 2 * job->n);
}

int main(int argc, char** argv) {
  static const example_t example = {.name = "fft",
                                    .default_size = 32768,
                                    .plan = plan,
                                    .prepare = prepare,
                                    .kernel = fft_kernel,
                                    .kernel_name = "fft_kernel",
                                    .results = results};
  return example_run(&example, argc, argv);
}
