// A fixed-point FFT of 64 points with a sine table made by recurrence, and its inverse.
#include "bare.h"

enum { kPoints = 64, kBits = 6, kOne = 1 << 14 };
static int32_t sine[kPoints];

static void make_sine(void) {
  // Doubled angle recurrence from sin and cos of 2 pi / 64 in Q30.
  const int64_t c1 = 1068571464, s1 = 105245103, one = 1 << 30;
  int64_t c = one, s = 0;
  for (int i = 0; i < kPoints; i++) {
    sine[i] = (int32_t)((s + (1 << 15)) >> 16);
    int64_t next_c = (c * c1 - s * s1) >> 30;
    s = (s * c1 + c * s1) >> 30;
    c = next_c;
  }
}

static NOINLINE void fft(int32_t* re, int32_t* im, int inverse) {
  for (int i = 0; i < kPoints; i++) {
    int j = 0;
    for (int b = 0; b < kBits; b++) j |= (i >> b & 1) << (kBits - 1 - b);
    if (j > i) {
      int32_t t = re[i];
      re[i] = re[j];
      re[j] = t;
      t = im[i];
      im[i] = im[j];
      im[j] = t;
    }
  }
  for (int size = 2; size <= kPoints; size *= 2)
    for (int start = 0; start < kPoints; start += size)
      for (int k = 0; k < size / 2; k++) {
        int angle = k * (kPoints / size);
        int32_t wr = sine[(angle + kPoints / 4) % kPoints],
                wi = inverse ? sine[angle] : -sine[angle];
        int a = start + k, b = a + size / 2;
        int32_t tr = (int32_t)(((int64_t)re[b] * wr - (int64_t)im[b] * wi) >> 14);
        int32_t ti = (int32_t)(((int64_t)re[b] * wi + (int64_t)im[b] * wr) >> 14);
        re[b] = re[a] - tr;
        im[b] = im[a] - ti;
        re[a] += tr;
        im[a] += ti;
      }
}

int main(void) {
  int32_t re[kPoints], im[kPoints], original[kPoints];
  make_sine();
  for (int i = 0; i < kPoints; i++) {
    original[i] = re[i] = sine[3 * i % kPoints] + (int32_t)(next_random() % 1000) - 500;
    im[i] = 0;
  }
  fft(re, im, 0);
  for (int i = 0; i < kPoints / 2; i += 2) print("%d: %d %d\n", i, re[i], im[i]);
  fft(re, im, 1);
  int worst = 0;
  for (int i = 0; i < kPoints; i++) {
    int error = re[i] / kPoints - original[i];
    if (error < 0) error = -error;
    if (error > worst) worst = error;
  }
  print("worst error %d\n", worst);
  return worst > 8;
}
