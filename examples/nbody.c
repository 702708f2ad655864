// Gravitation among N bodies, all pairs, single precision, leapfrog integration.
//
// An item of work is (slice of the sources, body): adjacent cores have adjacent bodies and read the
// same source at the same time, and there are kSlices times more items than bodies. The slices'
// forces are added in one fixed order, so the result does not depend on the number of cores.
#include "example.h"

#ifndef N
#define N 768
#endif
#ifndef STEPS
#define STEPS 2
#endif
enum { kSlices = 8, kSliceBodies = N / kSlices };
_Static_assert(N % kSlices == 0, "N must be a multiple of 8");

static const float kTimeStep = 1.0f / 1024;
static const float kSofteningSquared = 1.0f / 256;

typedef struct {
  float x[N], y[N], z[N];
} vectors_t;

static float mass[N];
static vectors_t position;
static vectors_t velocity;
static vectors_t force_of_slice[kSlices];

// Energy and momentum at the start and at the end, in units of 2^-kFixedBits: integers, so that the
// order in which cores add does not matter.
enum { kFixedBits = 32 };
typedef struct {
  uint64_t energy, px, py, pz;
} totals_t;
static totals_t totals[2];
static example_result_t result;

static uint64_t to_fixed(double x) {
  return (uint64_t)(int64_t)(x * (double)(INT64_C(1) << kFixedBits));
}

static void compute_forces(uint32_t id, uint32_t count) {
  for (uint32_t item = id; item < kSlices * N; item += count) {
    const uint32_t slice = item / N;
    const uint32_t i = item % N;
    const float x = position.x[i];
    const float y = position.y[i];
    const float z = position.z[i];
    float fx = 0;
    float fy = 0;
    float fz = 0;
    for (uint32_t j = slice * kSliceBodies; j < (slice + 1) * kSliceBodies; ++j) {
      const float dx = position.x[j] - x;
      const float dy = position.y[j] - y;
      const float dz = position.z[j] - z;
      const float square = dx * dx + dy * dy + dz * dz + kSofteningSquared;
      const float inverse = 1.0f / __builtin_sqrtf(square);
      const float strength = mass[j] * (inverse * inverse * inverse);
      fx += strength * dx;
      fy += strength * dy;
      fz += strength * dz;
    }
    force_of_slice[slice].x[i] = fx;
    force_of_slice[slice].y[i] = fy;
    force_of_slice[slice].z[i] = fz;
  }
  gpusim_barrier();
}

static float sum_slices(const float* first, uint32_t i) {
  const uint32_t floats_per_slice = sizeof(vectors_t) / sizeof(float);
  float sum = 0;
  for (uint32_t slice = 0; slice < kSlices; ++slice) sum += first[slice * floats_per_slice + i];
  return sum;
}

// Half a step of velocity.
static void kick(uint32_t id, uint32_t count) {
  for (uint32_t i = id; i < N; i += count) {
    velocity.x[i] += kTimeStep / 2 * sum_slices(force_of_slice[0].x, i);
    velocity.y[i] += kTimeStep / 2 * sum_slices(force_of_slice[0].y, i);
    velocity.z[i] += kTimeStep / 2 * sum_slices(force_of_slice[0].z, i);
  }
}

static void drift(uint32_t id, uint32_t count) {
  for (uint32_t i = id; i < N; i += count) {
    position.x[i] += kTimeStep * velocity.x[i];
    position.y[i] += kTimeStep * velocity.y[i];
    position.z[i] += kTimeStep * velocity.z[i];
  }
  gpusim_barrier();
}

static void add_totals(totals_t* t, uint32_t id, uint32_t count) {
  for (uint32_t item = id; item < kSlices * N; item += count) {
    const uint32_t slice = item / N;
    const uint32_t i = item % N;
    float potential = 0;
    for (uint32_t j = slice * kSliceBodies; j < (slice + 1) * kSliceBodies; ++j) {
      const float dx = position.x[j] - position.x[i];
      const float dy = position.y[j] - position.y[i];
      const float dz = position.z[j] - position.z[i];
      const float square = dx * dx + dy * dy + dz * dz + kSofteningSquared;
      potential -= mass[j] / __builtin_sqrtf(square);
    }
    double energy = 0.5 * (double)mass[i] * (double)potential;
    if (slice == 0) {
      const double m = (double)mass[i];
      const double vx = (double)velocity.x[i];
      const double vy = (double)velocity.y[i];
      const double vz = (double)velocity.z[i];
      energy += 0.5 * m * (vx * vx + vy * vy + vz * vz);
      gpusim_fetch_add_u64(&t->px, to_fixed(m * vx));
      gpusim_fetch_add_u64(&t->py, to_fixed(m * vy));
      gpusim_fetch_add_u64(&t->pz, to_fixed(m * vz));
    }
    gpusim_fetch_add_u64(&t->energy, to_fixed(energy));
  }
  gpusim_barrier();
}

// The force on every 16th body again, in double precision and in one sum.
static uint32_t check_forces(uint32_t id, uint32_t count) {
  uint32_t errors = 0;
  for (uint32_t i = 16 * id; i < N; i += 16 * count) {
    double f[3] = {0, 0, 0};
    for (uint32_t j = 0; j < N; ++j) {
      const double dx = (double)position.x[j] - (double)position.x[i];
      const double dy = (double)position.y[j] - (double)position.y[i];
      const double dz = (double)position.z[j] - (double)position.z[i];
      const double square = dx * dx + dy * dy + dz * dz + (double)kSofteningSquared;
      const double strength = (double)mass[j] / (square * __builtin_sqrt(square));
      f[0] += strength * dx;
      f[1] += strength * dy;
      f[2] += strength * dz;
    }
    errors += !(__builtin_fabs(f[0] - (double)sum_slices(force_of_slice[0].x, i)) < 1e-5);
    errors += !(__builtin_fabs(f[1] - (double)sum_slices(force_of_slice[0].y, i)) < 1e-5);
    errors += !(__builtin_fabs(f[2] - (double)sum_slices(force_of_slice[0].z, i)) < 1e-5);
  }
  return errors;
}

static uint32_t differ(uint64_t before, uint64_t after, double allowed) {
  const double change = (double)(int64_t)(after - before) / (double)(INT64_C(1) << kFixedBits);
  return __builtin_fabs(change) <= allowed ? 0 : 1;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  for (uint32_t i = id; i < N; i += count) {
    mass[i] = (1.0f + 0.5f * example_random_float(7 * i)) / N;
    position.x[i] = example_random_float(7 * i + 1);
    position.y[i] = example_random_float(7 * i + 2);
    position.z[i] = example_random_float(7 * i + 3);
    velocity.x[i] = 0.5f * example_random_float(7 * i + 4);
    velocity.y[i] = 0.5f * example_random_float(7 * i + 5);
    velocity.z[i] = 0.5f * example_random_float(7 * i + 6);
  }
  gpusim_barrier();
  add_totals(&totals[0], id, count);

  compute_forces(id, count);
  for (uint32_t step = 0; step < STEPS; ++step) {
    kick(id, count);
    drift(id, count);
    compute_forces(id, count);
    kick(id, count);
  }
  gpusim_barrier();
  add_totals(&totals[1], id, count);

  uint64_t checksum = 0;
  for (uint32_t i = id; i < N; i += count) {
    checksum += example_share(3 * i, example_float_bits(position.x[i]));
    checksum += example_share(3 * i + 1, example_float_bits(position.y[i]));
    checksum += example_share(3 * i + 2, example_float_bits(position.z[i]));
  }
  // Independent checks: the last forces computed otherwise; and physics: total momentum stays but
  // for rounding, total energy (about -0.4) but for the integration's error.
  uint32_t errors = check_forces(id, count);
  if (id == 0) {
    errors += differ(totals[0].px, totals[1].px, 1e-6);
    errors += differ(totals[0].py, totals[1].py, 1e-6);
    errors += differ(totals[0].pz, totals[1].pz, 1e-6);
    errors += differ(totals[0].energy, totals[1].energy, 1e-4);
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "nbody", N, GPUSIM_STDOUT);
}
