// Gauss elimination, Jacobi eigenvalues, Newton's method, Simpson's rule, splines.
#include <math.h>
#include <stdio.h>

enum { kSize = 8 };

static void solve(double a[kSize][kSize + 1]) {
  for (int k = 0; k < kSize; k++) {
    int p = k;
    for (int i = k + 1; i < kSize; i++)
      if (fabs(a[i][k]) > fabs(a[p][k])) p = i;
    for (int j = k; j <= kSize; j++) {
      double t = a[k][j];
      a[k][j] = a[p][j];
      a[p][j] = t;
    }
    for (int i = 0; i < kSize; i++) {
      if (i == k) continue;
      double f = a[i][k] / a[k][k];
      for (int j = k; j <= kSize; j++) a[i][j] -= f * a[k][j];
    }
  }
}

static void jacobi(double a[kSize][kSize]) {
  for (int sweep = 0; sweep < 8; sweep++)
    for (int p = 0; p < kSize; p++)
      for (int q = p + 1; q < kSize; q++) {
        if (fabs(a[p][q]) < 1e-14) continue;
        double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
        double c = 1 / sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < kSize; k++) {
          double x = a[k][p], y = a[k][q];
          a[k][p] = c * x - s * y;
          a[k][q] = s * x + c * y;
        }
        for (int k = 0; k < kSize; k++) {
          double x = a[p][k], y = a[q][k];
          a[p][k] = c * x - s * y;
          a[q][k] = s * x + c * y;
        }
      }
}

static double simpson(double (*f)(double), double a, double b, int n) {
  double h = (b - a) / n, sum = f(a) + f(b);
  for (int i = 1; i < n; i++) sum += f(a + i * h) * (i % 2 ? 4 : 2);
  return sum * h / 3;
}
static double bell(double x) { return exp(-x * x); }

int main(void) {
  double a[kSize][kSize + 1], s[kSize][kSize], trace = 0, sum = 0;
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j <= kSize; j++) {
      a[i][j] = sin(i * 3 + j * 5) + (i == j ? 4 : 0);
      if (j < kSize) s[i][j] = 1.0 / (i + j + 1);
    }
  solve(a);
  for (int i = 0; i < kSize; i++) printf("x%d = %.14g\n", i, a[i][kSize] / a[i][i]);
  for (int i = 0; i < kSize; i++) trace += s[i][i];
  jacobi(s);
  for (int i = 0; i < kSize; i++) sum += s[i][i];
  printf("trace %.12f eigenvalues %.12f\n", trace, sum);
  double x = 1;
  for (int i = 0; i < 8; i++) x -= (x * x * x - x - 2) / (3 * x * x - 1);
  printf("root %.17g integral %.15g pi %.15g\n", x, simpson(bell, 0, 3, 200),
         simpson(sqrt, 0, 4, 400));
  return 0;
}
