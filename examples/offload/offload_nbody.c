// Gravitation among --size N bodies, all pairs, two steps of leapfrog integration, offloaded.
//
// An item of work is (slice of the sources, body), as in examples/nbody.c; slices are added in one
// fixed order, so results do not depend on the number of cores.
#include <stdio.h>

#include "offload_example.h"

enum { kSlices = 8, kSteps = 2 };
static const float kTimeStep = 1.0f / 1024;
static const float kSofteningSquared = 1.0f / 256;

typedef struct {
  uint64_t n;
  float numbers[];  // n each: position x y z, velocity x y z, mass, force x y z of each slice
} job_t;

static size_t plan(example_options_t* options) {
  const uint64_t n = options->size;
  if (n % kSlices != 0 || n > 1u << 20) {
    fprintf(stderr, "offload_nbody: --size: a multiple of 8, at most 1048576\n");
    return 0;
  }
  return sizeof(job_t) + (7 + 3 * kSlices) * n * sizeof(float);
}

static void prepare(void* memory, const example_options_t* options) {
  job_t* const job = memory;
  const uint64_t n = options->size;
  job->n = n;
  for (uint64_t i = 0; i < 6 * n; ++i) {
    job->numbers[i] = example_random((uint32_t)i) * (i < 3 * n ? 1.0f : 0.5f);
  }
  for (uint64_t i = 6 * n; i < 7 * n; ++i) {
    job->numbers[i] = (1.0f + 0.5f * example_random((uint32_t)i)) / (float)n;
  }
}

static void compute_forces(job_t* job, uint64_t core, uint64_t cores) {
  const uint64_t n = job->n;
  const uint64_t slice_bodies = n / kSlices;
  const float* const px = job->numbers;
  const float* const py = px + n;
  const float* const pz = py + n;
  const float* const mass = px + 6 * n;
  for (uint64_t item = core; item < kSlices * n; item += cores) {
    const uint64_t slice = item / n;
    const uint64_t i = item % n;
    const float x = px[i];
    const float y = py[i];
    const float z = pz[i];
    float fx = 0;
    float fy = 0;
    float fz = 0;
    for (uint64_t j = slice * slice_bodies; j < (slice + 1) * slice_bodies; ++j) {
      const float dx = px[j] - x;
      const float dy = py[j] - y;
      const float dz = pz[j] - z;
      const float square = dx * dx + dy * dy + dz * dz + kSofteningSquared;
      const float inverse = 1.0f / __builtin_sqrtf(square);
      const float strength = mass[j] * (inverse * inverse * inverse);
      fx += strength * dx;
      fy += strength * dy;
      fz += strength * dz;
    }
    float* const force = job->numbers + (7 + 3 * slice) * n;
    force[i] = fx;
    force[n + i] = fy;
    force[2 * n + i] = fz;
  }
  example_barrier(cores);
}

// Half a step of velocity.
static void kick(job_t* job, uint64_t core, uint64_t cores) {
  const uint64_t n = job->n;
  for (uint64_t item = core; item < 3 * n; item += cores) {
    const float* const force = job->numbers + 7 * n + item;
    float sum = 0;
    for (uint64_t slice = 0; slice < kSlices; ++slice) sum += force[slice * 3 * n];
    job->numbers[3 * n + item] += kTimeStep / 2 * sum;
  }
  example_barrier(cores);
}

static void drift(job_t* job, uint64_t core, uint64_t cores) {
  const uint64_t n = job->n;
  for (uint64_t item = core; item < 3 * n; item += cores) {
    job->numbers[item] += kTimeStep * job->numbers[3 * n + item];
  }
  example_barrier(cores);
}

void nbody_kernel(void* memory, uint64_t core, uint64_t cores) {
  job_t* const job = memory;
  compute_forces(job, core, cores);
  for (int step = 0; step < kSteps; ++step) {
    kick(job, core, cores);
    drift(job, core, cores);
    compute_forces(job, core, cores);
    kick(job, core, cores);
  }
}

static const void* results(const void* memory, size_t* size_bytes) {
  const job_t* const job = memory;
  *size_bytes = 6 * job->n * sizeof(float);
  return job->numbers;
}

int main(int argc, char** argv) {
  static const example_t example = {.name = "nbody",
                                    .default_size = 1024,
                                    .plan = plan,
                                    .prepare = prepare,
                                    .kernel = nbody_kernel,
                                    .kernel_name = "nbody_kernel",
                                    .results = results};
  return example_run(&example, argc, argv);
}
