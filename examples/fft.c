// Fast Fourier transform of 2^LOG2_N complex numbers in single precision, there and back.
//
// Stockham's self-sorting radix-2 form: a step reads element i and i + N/2, so core c and its
// neighbours read adjacent elements in every step; a barrier ends each step. The direction is a
// sign of the twiddle factors' imaginary part. Real and imaginary parts are separate arrays.
#include "example.h"
#include "trigonometry.h"

#ifndef LOG2_N
#define LOG2_N 15
#endif
#define N (UINT32_C(1) << LOG2_N)

typedef struct {
  float re[N];
  float im[N];
} signal_t;

static signal_t buffer[2];
static float twiddle_cos[N / 2];
static float twiddle_sin[N / 2];
enum { kSampleBins = 4 };
static uint64_t sample_re[kSampleBins];  // bins straight from the definition
static uint64_t sample_im[kSampleBins];
static uint64_t energy_in;
static uint64_t energy_out;
static example_result_t result;

static float input_re(uint32_t i) { return example_random_float(2 * i); }
static float input_im(uint32_t i) { return example_random_float(2 * i + 1); }

// Returns the buffer that holds the result; the other one is overwritten.
static signal_t* transform(signal_t* from, signal_t* to, float direction, uint32_t id,
                           uint32_t count) {
  for (uint32_t half = 1; half < N; half *= 2) {  // half the length of the transforms made
    const uint32_t stride = N / 2 / half;         // between their twiddle factors
    for (uint32_t i = id; i < N / 2; i += count) {
      const uint32_t k = i & (half - 1);
      const uint32_t out = 2 * i - k;
      const float w_re = twiddle_cos[k * stride];
      const float w_im = direction * twiddle_sin[k * stride];
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
    gpusim_barrier();
    signal_t* const swap = from;
    from = to;
    to = swap;
  }
  return from;
}

// |x|^2 as an integer, so that the cores' sums do not depend on their order.
static uint64_t energy_of(const signal_t* s, uint32_t i, double unit) {
  const double re = (double)s->re[i];
  const double im = (double)s->im[i];
  return (uint64_t)((re * re + im * im) * unit);
}

static const double kFixedOne = (double)(UINT64_C(1) << 40);

static uint32_t sample_bin(uint32_t s) { return (s * (N / 4) + 5 * s * s + 1) % N; }

// This core's share of the sample bins: the sum of input times e^(-2 pi i k bin / N).
static void add_sample_bins(uint32_t id, uint32_t count) {
  for (uint32_t s = 0; s < kSampleBins; ++s) {
    double re = 0;
    double im = 0;
    for (uint32_t i = id; i < N; i += count) {
      const trig_t t = trig_turn(i * sample_bin(s) % N, N);
      re += (double)input_re(i) * t.cos + (double)input_im(i) * t.sin;
      im += (double)input_im(i) * t.cos - (double)input_re(i) * t.sin;
    }
    gpusim_fetch_add_u64(&sample_re[s], (uint64_t)(int64_t)(re * kFixedOne));
    gpusim_fetch_add_u64(&sample_im[s], (uint64_t)(int64_t)(im * kFixedOne));
  }
}

static uint32_t differs(float found, uint64_t expected_fixed) {
  const double expected = (double)(int64_t)expected_fixed / kFixedOne;
  return __builtin_fabs((double)found - expected) < 1e-3 ? 0 : 1;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  signal_t* const input = &buffer[0];
  uint64_t energy = 0;
  for (uint32_t i = id; i < N; i += count) {
    input->re[i] = input_re(i);
    input->im[i] = input_im(i);
    energy += energy_of(input, i, kFixedOne);
  }
  gpusim_fetch_add_u64(&energy_in, energy);
  for (uint32_t k = id; k < N / 2; k += count) {
    const trig_t t = trig_turn(k, N);
    twiddle_cos[k] = (float)t.cos;
    twiddle_sin[k] = (float)t.sin;
  }
  gpusim_barrier();

  signal_t* const spectrum = transform(input, &buffer[1], -1.0f, id, count);
  uint64_t checksum = 0;
  energy = 0;
  for (uint32_t i = id; i < N; i += count) {
    checksum += example_share(2 * i, example_float_bits(spectrum->re[i]));
    checksum += example_share(2 * i + 1, example_float_bits(spectrum->im[i]));
    energy += energy_of(spectrum, i, kFixedOne / N);
  }
  gpusim_fetch_add_u64(&energy_out, energy);
  add_sample_bins(id, count);
  gpusim_barrier();
  uint32_t errors = 0;
  if (id == 0) {
    for (uint32_t bin = 0; bin < kSampleBins; ++bin) {
      errors += differs(spectrum->re[sample_bin(bin)], sample_re[bin]);
      errors += differs(spectrum->im[sample_bin(bin)], sample_im[bin]);
    }
  }
  gpusim_barrier();  // all have read the spectrum, which the way back overwrites

  signal_t* const other = spectrum == &buffer[0] ? &buffer[1] : &buffer[0];
  signal_t* const back = transform(spectrum, other, 1.0f, id, count);

  // Independent checks: some bins from the definition (above), the inverse gives the input again,
  // and Parseval's theorem holds.
  for (uint32_t i = id; i < N; i += count) {
    const float scale = 1.0f / N;
    errors += !(example_abs(back->re[i] * scale - input_re(i)) < 1e-5f);
    errors += !(example_abs(back->im[i] * scale - input_im(i)) < 1e-5f);
  }
  if (id == 0) {
    const double ratio = (double)energy_out / (double)energy_in;
    errors += !(ratio > 1 - 1e-6 && ratio < 1 + 1e-6);
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "fft", N, GPUSIM_STDOUT);
}
