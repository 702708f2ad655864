// Many small Fourier transforms: each core does whole signals of 2^LOG2_N complex numbers in single
// precision by itself.
//
// Stockham's self-sorting radix-2 form, as in fft.c, but the inner loop runs over neighbouring
// elements of one core's signal: a compiler can vectorise it for the guest.
#include "example.h"
#include "trigonometry.h"

#ifndef LOG2_N
#define LOG2_N 8
#endif
#ifndef SIGNALS
#define SIGNALS 1024
#endif
#ifndef REPEAT  // forward and backward, there and back
#define REPEAT 1
#endif
#define N (UINT32_C(1) << LOG2_N)
#define TRANSFORMS (2 * REPEAT)

typedef struct {
  float re[N];
  float im[N];
} signal_t;

static signal_t signals[SIGNALS];
static signal_t spare[SIGNALS];
static float twiddle_cos[N / 2];
static float twiddle_sin[N / 2];
#ifdef TABLES  // each core has its own, at most so many; a word more, for other banks of a memory
static struct {
  float cos[N / 2];
  float sin[N / 2 + 1];
} tables[TABLES];
#define COS(k) tables[gpusim_core_id()].cos[k]
#define SIN(k) tables[gpusim_core_id()].sin[k]
#else
#define COS(k) twiddle_cos[k]
#define SIN(k) twiddle_sin[k]
#endif
static example_result_t result;

static float input_re(uint32_t s, uint32_t i) { return example_random_float(2 * (s * N + i)); }
static float input_im(uint32_t s, uint32_t i) { return example_random_float(2 * (s * N + i) + 1); }

// One pass: pairs of transforms of `half` elements become one of 2 * half.
static void pass(const signal_t* restrict from, signal_t* restrict to, uint32_t half,
                 float direction) {
  const uint32_t stride = N / 2 / half;  // between the pass's twiddle factors
  for (uint32_t first = 0; first < N / 2; first += half) {
    for (uint32_t k = 0; k < half; ++k) {
      const uint32_t i = first + k;
      const uint32_t out = 2 * first + k;
      const float w_re = COS(k * stride);
      const float w_im = direction * SIN(k * stride);
      const float b_re = from->re[i + N / 2];
      const float b_im = from->im[i + N / 2];
      const float t_re = b_re * w_re - b_im * w_im;
      const float t_im = b_re * w_im + b_im * w_re;
      const float a_re = from->re[i];
      const float a_im = from->im[i];
      to->re[out] = a_re + t_re;
      to->im[out] = a_im + t_im;
      to->re[out + half] = a_re - t_re;
      to->im[out + half] = a_im - t_im;
    }
  }
}

// Leaves the result in `x`, divided by `scale`.
static void transform(signal_t* x, signal_t* other, float direction, float scale) {
  signal_t* from = x;
  signal_t* to = other;
  for (uint32_t half = 1; half < N; half *= 2) {
    pass(from, to, half, direction);
    signal_t* const swap = from;
    from = to;
    to = swap;
  }
  for (uint32_t i = 0; i < N; ++i) {
    x->re[i] = from->re[i] / scale;
    x->im[i] = from->im[i] / scale;
  }
}

static double energy_of(const signal_t* x) {
  double sum = 0;
  for (uint32_t i = 0; i < N; ++i) {
    const double re = (double)x->re[i];
    const double im = (double)x->im[i];
    sum += re * re + im * im;
  }
  return sum;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  for (uint32_t k = id; k < N / 2; k += count) {
    const trig_t t = trig_turn(k, N);
    twiddle_cos[k] = (float)t.cos;
    twiddle_sin[k] = (float)t.sin;
  }
  gpusim_barrier();
#ifdef TABLES
  for (uint32_t i = 0; i < N / 2; ++i) {
    const uint32_t k = (id + i) % (N / 2);  // not all the same word
    COS(k) = twiddle_cos[k];
    SIN(k) = twiddle_sin[k];
  }
#endif

  uint64_t checksum = 0;
  uint32_t errors = 0;
  for (uint32_t s = id; s < SIGNALS; s += count) {
    signal_t* const x = &signals[s];
    for (uint32_t i = 0; i < N; ++i) {
      x->re[i] = input_re(s, i);
      x->im[i] = input_im(s, i);
    }
    // Energy is the same before and after, but for rounding and the factor N.
    const double before = energy_of(x);
    transform(x, &spare[s], -1.0f, 1.0f);
    const double after = energy_of(x) / N;
    errors += !(__builtin_fabs(after - before) < 1e-4 * before);
    for (uint32_t i = 0; i < N; ++i) {
      checksum += example_share(2 * (s * N + i), example_float_bits(x->re[i]));
      checksum += example_share(2 * (s * N + i) + 1, example_float_bits(x->im[i]));
    }
    for (uint32_t t = 1; t < TRANSFORMS; ++t)
      transform(x, &spare[s], t % 2 == 0 ? -1.0f : 1.0f, t % 2 == 0 ? 1.0f : (float)N);
    for (uint32_t i = 0; i < N; ++i) {
      errors += !(__builtin_fabsf(x->re[i] - input_re(s, i)) < 1e-4f);
      errors += !(__builtin_fabsf(x->im[i] - input_im(s, i)) < 1e-4f);
    }
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "fft_batch", SIGNALS, GPUSIM_STDOUT);
}
