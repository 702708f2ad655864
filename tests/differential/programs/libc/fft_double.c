// A recursive and an iterative FFT in double precision, against the plain sum.
#include <complex.h>
#include <math.h>
#include <stdio.h>

enum { kPoints = 128 };

static void recursive(const double complex* in, double complex* out, int n, int step) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  recursive(in, out, n / 2, 2 * step);
  recursive(in + step, out + n / 2, n / 2, 2 * step);
  for (int k = 0; k < n / 2; k++) {
    double complex even = out[k], odd = out[k + n / 2] * cexp(-2 * I * M_PI * k / n);
    out[k] = even + odd;
    out[k + n / 2] = even - odd;
  }
}

static void iterative(double complex* a, int n) {
  for (int i = 1, j = 0; i < n; i++) {
    int bit = n / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) {
      double complex t = a[i];
      a[i] = a[j];
      a[j] = t;
    }
  }
  for (int size = 2; size <= n; size *= 2) {
    double complex w = cexp(-2 * I * M_PI / size);
    for (int start = 0; start < n; start += size) {
      double complex factor = 1;
      for (int k = 0; k < size / 2; k++, factor *= w) {
        double complex t = factor * a[start + k + size / 2];
        a[start + k + size / 2] = a[start + k] - t;
        a[start + k] += t;
      }
    }
  }
}

int main(void) {
  static double complex in[kPoints], a[kPoints], b[kPoints];
  double worst = 0;
  for (int i = 0; i < kPoints; i++) b[i] = in[i] = sin(i * 0.3) + 0.5 * cos(i * 1.7) + I * (i % 5);
  recursive(in, a, kPoints, 1);
  iterative(b, kPoints);
  for (int k = 0; k < kPoints; k++) {
    if (k % 8 == 0) {
      double complex sum = 0;
      for (int i = 0; i < kPoints; i++) sum += in[i] * cexp(-2 * I * M_PI * i * k / kPoints);
      worst = fmax(worst, cabs(sum - a[k]));
      printf("%d: %.12g %.12g %.12g %.12g\n", k, creal(a[k]), cimag(a[k]), creal(b[k]),
             cimag(b[k]));
    }
    worst = fmax(worst, cabs(a[k] - b[k]));
  }
  printf("close enough: %d\n", worst < 1e-9);
  return worst >= 1e-9;
}
