// What the examples share: pseudo-random input, order-independent checksums, the result line.
//
// Every example gives the same output on any number of cores, and the same as the same source built
// natively: what is summed across cores is summed in integers, so that the order does not matter,
// and floating-point values each come from one core in one fixed order of operations, without
// contraction (-ffp-contract=off).
#ifndef GPUSIM_EXAMPLE_H
#define GPUSIM_EXAMPLE_H

#include "gpusim_guest.h"

// A 32-bit mixing function (xor-shift and odd multipliers): equal inputs, equal "random" numbers,
// whichever core asks.
static inline uint32_t example_random(uint32_t x) {
  x ^= x >> 16;
  x *= UINT32_C(0x9E3779B1);
  x ^= x >> 13;
  x *= UINT32_C(0xB5297A4D);
  x ^= x >> 16;
  return x;
}

// Uniform in [-1, 1), exact in float: 24 bits.
static inline float example_random_float(uint32_t x) {
  return (float)((int32_t)(example_random(x) >> 8) - (1 << 23)) * (1.0f / (1 << 23));
}

// One element's share of a checksum. The shares are added, so any core may add any of them at any
// time; a value at the wrong index changes the sum.
static inline uint64_t example_share(uint32_t index, uint64_t value) {
  uint64_t x = value + UINT64_C(0x9E3779B97F4A7C15) * (index + UINT64_C(1));
  x ^= x >> 29;
  x *= UINT64_C(0xD1B54A32D192ED03);
  return x ^ (x >> 32);
}

static inline uint32_t example_float_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float example_abs(float x) { return __builtin_fabsf(x); }

// What all cores report to: zero-initialised, one per program.
typedef struct {
  uint64_t checksum;
  uint32_t errors;
} example_result_t;

static inline void example_report(example_result_t* result, uint64_t checksum, uint32_t errors) {
  if (checksum != 0) gpusim_fetch_add_u64(&result->checksum, checksum);
  if (errors != 0) gpusim_count_u32(&result->errors, errors);
}

// To be called by every core when all its reports are in. Core 0 prints "NAME n=SIZE checksum=...
// ok" (or FAILED) to `fd`. Returns the exit status of the core that calls.
static inline int example_finish(example_result_t* result, const char* name, uint64_t size,
                                 int fd) {
  gpusim_barrier();
  if (gpusim_core_id() != 0) return 0;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, name);
  gpusim_line_str(&line, " n=");
  gpusim_line_u64(&line, size);
  gpusim_line_str(&line, " checksum=");
  gpusim_line_hex(&line, result->checksum, 16);
  if (result->errors == 0) {
    gpusim_line_str(&line, " ok");
  } else {
    gpusim_line_str(&line, " FAILED errors=");
    gpusim_line_u64(&line, result->errors);
  }
  const int written = gpusim_line_write(&line, fd);
  return result->errors == 0 && written == 0 ? 0 : 1;
}

// Writes a greyscale picture to standard output as PGM. One core calls it. Returns 0 or -1.
static inline int example_write_pgm(const uint8_t* pixels, uint32_t width, uint32_t height) {
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, "P5 ");
  gpusim_line_u64(&line, width);
  gpusim_line_str(&line, " ");
  gpusim_line_u64(&line, height);
  gpusim_line_str(&line, " 255");
  if (gpusim_line_write(&line, GPUSIM_STDOUT) != 0) return -1;
  return gpusim_write_all(GPUSIM_STDOUT, pixels, (size_t)width * height);
}

#endif  // GPUSIM_EXAMPLE_H
