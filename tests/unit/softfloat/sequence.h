// The operand sequence that the guest program and the test both generate. C and C++; integer
// arithmetic only, so that the FPCR under test cannot disturb it.
#pragma once

#include <stdint.h>

enum operand_kind { kHalf, kSingle, kDouble, kInt };

struct sequence {
  uint64_t state;
};

static inline uint64_t sequence_next(struct sequence* s) {
  // splitmix64
  uint64_t z = (s->state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static inline int kind_bits(int kind) { return kind == kHalf ? 16 : kind == kSingle ? 32 : 64; }
static inline int kind_frac_bits(int kind) {
  return kind == kHalf ? 10 : kind == kSingle ? 23 : 52;
}

static inline uint64_t float_from_fields(int kind, uint64_t sign, uint64_t exp, uint64_t frac) {
  const int frac_bits = kind_frac_bits(kind);
  const uint64_t exp_ones = ((uint64_t)1 << (kind_bits(kind) - 1 - frac_bits)) - 1;
  return (sign & 1) << (kind_bits(kind) - 1) | (exp & exp_ones) << frac_bits |
         (frac & (((uint64_t)1 << frac_bits) - 1));
}

enum { kSpecialCount = 60 };

// Zeros, subnormals, limits, integers' limits and their neighbours, infinities, NaNs: 30 magnitudes
// in both signs.
static inline uint64_t special_float(int kind, int index) {
  const int frac_bits = kind_frac_bits(kind);
  const uint64_t ones = ((uint64_t)1 << frac_bits) - 1;
  const uint64_t quiet = (uint64_t)1 << (frac_bits - 1);
  const uint64_t bias = ((uint64_t)1 << (kind_bits(kind) - 2 - frac_bits)) - 1;
  const uint64_t top = 2 * bias;
  const uint64_t fields[kSpecialCount / 2][2] = {{0, 0},
                                                 {0, 1},
                                                 {0, 2},
                                                 {0, quiet},
                                                 {0, ones},
                                                 {1, 0},
                                                 {1, 1},
                                                 {1, ones},
                                                 {2, 0},
                                                 {bias - 1, 0},
                                                 {bias - 1, ones},
                                                 {bias, 0},
                                                 {bias, 1},
                                                 {bias, quiet},
                                                 {bias + 1, 0},
                                                 {bias + 1, quiet},
                                                 {bias + (uint64_t)frac_bits, 1},
                                                 {bias + 15, 0},
                                                 {bias + 31, 0},
                                                 {bias + 30, ones},
                                                 {bias + 32, 0},
                                                 {bias + 63, 0},
                                                 {bias + 62, ones},
                                                 {bias + 64, 0},
                                                 {top, 0},
                                                 {top, ones},
                                                 {top + 1, 0},
                                                 {top + 1, quiet},
                                                 {top + 1, 1},
                                                 {top + 1, ones}};
  const uint64_t* f = fields[index / 2];
  return float_from_fields(kind, (uint64_t)index, f[0], f[1]);
}

// Fractions with long runs of zeros and ones make ties, carries and exact results likely.
static inline uint64_t sparse_bits(struct sequence* s) {
  const uint64_t r = sequence_next(s);
  const uint64_t run = ~(uint64_t)0 << (r & 63);
  switch ((r >> 6) & 3) {
    case 0:
      return run;
    case 1:
      return run ^ (uint64_t)1 << (r >> 8 & 63);
    case 2:
      return (uint64_t)1 << (r >> 8 & 63) | (uint64_t)1 << (r >> 16 & 63);
    default:
      return run ^ ~(uint64_t)0 << (r >> 8 & 63);
  }
}

static inline uint64_t random_float(struct sequence* s, int kind) {
  const uint64_t r = sequence_next(s);
  const int frac_bits = kind_frac_bits(kind);
  const uint64_t bias = ((uint64_t)1 << (kind_bits(kind) - 2 - frac_bits)) - 1;
  const uint64_t frac = (r & 8) ? sparse_bits(s) : sequence_next(s);
  switch (r & 7) {
    case 0:
      return special_float(kind, (int)((r >> 8) % kSpecialCount));
    case 1:
      return float_from_fields(kind, r >> 8, r >> 16 & 3, frac);  // at the subnormal border
    case 2:
    case 3:
      return float_from_fields(kind, r >> 8, r >> 16, frac);
    case 4:  // around the integers' limits
      return float_from_fields(kind, r >> 8, bias + (r >> 16) % 70, frac);
    default: {
      const uint64_t reach = (uint64_t)frac_bits / 2 + 2;
      return float_from_fields(kind, r >> 8, bias - reach + (r >> 16) % (2 * reach), frac);
    }
  }
}

static inline uint64_t random_int(struct sequence* s) {
  const uint64_t r = sequence_next(s);
  const uint64_t value = (r & 1) ? sparse_bits(s) : sequence_next(s);
  const uint64_t narrow = value >> (r >> 8 & 63);
  return (r & 2) ? 0 - narrow : narrow;
}

// Three operands; often close to one another (cancellation) or, for a fused multiply-add, with an
// addend of the product's size.
static inline void random_operands(struct sequence* s, int kind, uint64_t out[3]) {
  for (int i = 0; i < 3; ++i) out[i] = kind == kInt ? random_int(s) : random_float(s, kind);
  if (kind == kInt) return;
  const int frac_bits = kind_frac_bits(kind);
  const uint64_t bias = ((uint64_t)1 << (kind_bits(kind) - 2 - frac_bits)) - 1;
  const uint64_t sign = (uint64_t)1 << (kind_bits(kind) - 1);
  const uint64_t r = sequence_next(s);
  if ((r & 3) == 0) out[1] = out[0] ^ (r & 4 ? sign : 0) ^ (r >> 8 & 7);
  if ((r & 0x30) == 0) {
    const uint64_t exp = (out[0] >> frac_bits) + (out[1] >> frac_bits) - bias + (r >> 16 & 3) - 1;
    out[2] = float_from_fields(kind, r >> 24, exp, out[2]);
  }
}

// Rounding mode, FZ, DN, FZ16 and AHP, each at random.
static inline uint64_t random_fpcr(struct sequence* s) {
  return sequence_next(s) & (0x1Fu << 22 | 1u << 19);
}

// The FPCR changes once in so many operations.
enum { kSamplesPerFpcr = 32 };
