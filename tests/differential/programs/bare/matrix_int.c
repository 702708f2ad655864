// Integer matrices: product, power, transpose, determinant without fractions.
#include "bare.h"

enum { kSize = 16 };
typedef int64_t Matrix[kSize][kSize];

static NOINLINE void multiply(Matrix c, Matrix a, Matrix b) {
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) {
      int64_t s = 0;
      for (int k = 0; k < kSize; k++) s += a[i][k] * b[k][j];
      c[i][j] = s;
    }
}

static NOINLINE void transpose(Matrix a) {
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < i; j++) {
      int64_t t = a[i][j];
      a[i][j] = a[j][i];
      a[j][i] = t;
    }
}

static NOINLINE int64_t determinant(int n) {
  int64_t m[6][6], previous = 1, sign = 1;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) m[i][j] = (i * 7 + j * 3 + i * j) % 11 - 5;
  for (int k = 0; k < n - 1; k++) {
    int p = k;
    while (p < n && m[p][k] == 0) p++;
    if (p == n) return 0;
    if (p != k) {
      sign = -sign;
      for (int j = 0; j < n; j++) {
        int64_t t = m[p][j];
        m[p][j] = m[k][j];
        m[k][j] = t;
      }
    }
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) / previous;
    previous = m[k][k];
  }
  return sign * m[n - 1][n - 1];
}

int main(void) {
  static Matrix a, b, c;
  static int16_t small[24][24], product[24][24];
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) a[i][j] = (int)(next_random() % 7) - 3, b[i][j] = i == j;
  for (int power = 0; power < 5; power++) {
    multiply(c, a, b);
    memcpy(b, c, sizeof b);
    transpose(b);
    int64_t trace = 0, sum = 0;
    for (int i = 0; i < kSize; i++) {
      trace += b[i][i];
      for (int j = 0; j < kSize; j++) sum ^= b[i][j] * (i + 2 * j);
    }
    print("power %d trace %ld sum %16lx\n", power, trace, (uint64_t)sum);
  }
  for (int n = 1; n <= 6; n++) print("det %d = %ld\n", n, determinant(n));
  for (int i = 0; i < 24; i++)
    for (int j = 0; j < 24; j++) small[i][j] = (int16_t)(i * j + 1);
  for (int i = 0; i < 24; i++)
    for (int j = 0; j < 24; j++)
      for (int k = 0; k < 24; k++)
        product[i][j] = (int16_t)(product[i][j] + small[i][k] * small[k][j]);
  print("%d %d %d\n", product[3][5], product[23][23], product[11][0]);
  return 0;
}
