// Sine and cosine of 2 pi k / n from additions and multiplications alone: the same bits everywhere.
#ifndef GPUSIM_TRIGONOMETRY_H
#define GPUSIM_TRIGONOMETRY_H

#include <stdint.h>

// Taylor series for 0 <= x <= pi/4; the first term left out is below 1e-15.
static inline double trig_sin_octant(double x) {
  const double y = x * x;
  double s = -1.0 / 39916800.0;
  s = s * y + 1.0 / 362880.0;
  s = s * y - 1.0 / 5040.0;
  s = s * y + 1.0 / 120.0;
  s = s * y - 1.0 / 6.0;
  return x + x * (s * y);
}

static inline double trig_cos_octant(double x) {
  const double y = x * x;
  double c = 1.0 / 479001600.0;
  c = c * y - 1.0 / 3628800.0;
  c = c * y + 1.0 / 40320.0;
  c = c * y - 1.0 / 720.0;
  c = c * y + 1.0 / 24.0;
  c = c * y - 0.5;
  return 1.0 + c * y;
}

typedef struct {
  double cos;
  double sin;
} trig_t;

// For k < n and n a multiple of 8. The octants are told apart in integers, so symmetric angles give
// values that are equal up to their sign.
static inline trig_t trig_turn(uint32_t k, uint32_t n) {
  const uint32_t eighth = n / 8;
  const uint32_t octant = k / eighth;
  const uint32_t rest = k % eighth;
  // In odd octants measure back from the next multiple of a quarter turn.
  const uint32_t steps = (octant & 1) != 0 ? eighth - rest : rest;
  const double angle = 6.283185307179586476925 * (double)steps / (double)n;
  const double s = trig_sin_octant(angle);
  const double c = trig_cos_octant(angle);
  const double a = (octant & 1) != 0 ? s : c;  // cos and sin within the quadrant
  const double b = (octant & 1) != 0 ? c : s;
  trig_t t;
  switch (octant >> 1) {
    case 0:
      t.cos = a, t.sin = b;
      break;
    case 1:
      t.cos = -b, t.sin = a;
      break;
    case 2:
      t.cos = -a, t.sin = -b;
      break;
    default:
      t.cos = b, t.sin = -a;
      break;
  }
  return t;
}

#endif  // GPUSIM_TRIGONOMETRY_H
