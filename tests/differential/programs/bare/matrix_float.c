// Float and double matrices: product, LU decomposition, a power iteration; bits are printed.
#include "bare.h"

enum { kSize = 12 };

static uint64_t bits(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}
static uint32_t bits32(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static NOINLINE void multiply(float c[kSize][kSize], float a[kSize][kSize], float b[kSize][kSize]) {
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) {
      float s = 0;
      for (int k = 0; k < kSize; k++) s += a[i][k] * b[k][j];
      c[i][j] = s;
    }
}

static NOINLINE double lu(double m[kSize][kSize]) {
  double det = 1;
  for (int k = 0; k < kSize; k++) {
    int best = k;
    for (int i = k + 1; i < kSize; i++)
      if (__builtin_fabs(m[i][k]) > __builtin_fabs(m[best][k])) best = i;
    if (best != k) {
      det = -det;
      for (int j = 0; j < kSize; j++) {
        double t = m[k][j];
        m[k][j] = m[best][j];
        m[best][j] = t;
      }
    }
    det *= m[k][k];
    for (int i = k + 1; i < kSize; i++) {
      double f = m[i][k] / m[k][k];
      for (int j = k; j < kSize; j++) m[i][j] -= f * m[k][j];
    }
  }
  return det;
}

int main(void) {
  static float a[kSize][kSize], b[kSize][kSize], c[kSize][kSize];
  static double m[kSize][kSize];
  double v[kSize];
  for (int i = 0; i < kSize; i++) {
    v[i] = 1;
    for (int j = 0; j < kSize; j++) {
      a[i][j] = (float)(int)(next_random() % 1000) / 37.0f - 13;
      b[i][j] = (float)(i - j) * 0.1f;
      m[i][j] = a[i][j] + (i == j ? 20 : 0);
    }
  }
  multiply(c, a, b);
  for (int i = 0; i < kSize; i++) print("%8x %8x\n", bits32(c[i][i]), bits32(c[i][kSize - 1 - i]));
  for (int step = 0; step < 8; step++) {
    double w[kSize], norm = 0;
    for (int i = 0; i < kSize; i++) {
      w[i] = 0;
      for (int j = 0; j < kSize; j++) w[i] += m[i][j] * v[j];
      norm += w[i] * w[i];
    }
    norm = __builtin_sqrt(norm);
    for (int i = 0; i < kSize; i++) v[i] = w[i] / norm;
    print("norm %16lx\n", bits(norm));
  }
  print("det %16lx\n", bits(lu(m)));
  return 0;
}
