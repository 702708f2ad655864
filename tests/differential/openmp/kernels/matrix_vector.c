// atax, bicg, mvt, gesummv, gemver: matrices and vectors.
#include "kernel.h"

enum { N = 120, M = 90 };
static double a[N][M], x[M], square[N][N];
static double t[2][N], y[2][M], q[2][N], s[2][M], x1[2][N], x2[2][N], g[2][N], v[2][N][N];

static void atax(double* product, double* out, int parallel) {
#pragma omp parallel if (parallel)
  {
#pragma omp for
    for (int i = 0; i < N; ++i) {
      product[i] = 0;
      for (int j = 0; j < M; ++j) product[i] += a[i][j] * x[j];
    }
#pragma omp for schedule(static, 4)
    for (int j = 0; j < M; ++j) {
      out[j] = 0;
      for (int i = 0; i < N; ++i) out[j] += a[i][j] * product[i];
    }
  }
}
static void bicg(double* rows, double* columns, int parallel) {
#pragma omp parallel if (parallel)
  {
#pragma omp for nowait schedule(dynamic, 8)
    for (int i = 0; i < N; ++i) {
      rows[i] = 0;
      for (int j = 0; j < M; ++j) rows[i] += a[i][j] * x[j];
    }
#pragma omp for schedule(guided, 2)
    for (int j = 0; j < M; ++j) {
      columns[j] = 0;
      for (int i = 0; i < N; ++i) columns[j] += value(i, 3) * a[i][j];
    }
  }
}
static void mvt(double* first, double* second, int parallel) {
#pragma omp parallel sections if (parallel)
  {
#pragma omp section
    for (int i = 0; i < N; ++i) {
      first[i] = value(i, 1);
      for (int j = 0; j < N; ++j) first[i] += square[i][j] * value(j, 5);
    }
#pragma omp section
    for (int i = 0; i < N; ++i) {
      second[i] = value(i, 2);
      for (int j = 0; j < N; ++j) second[i] += square[j][i] * value(j, 6);
    }
  }
}
static void gesummv(double* out, int parallel) {
#pragma omp parallel for if (parallel) schedule(runtime)
  for (int i = 0; i < N; ++i) {
    double one = 0, other = 0;
    for (int j = 0; j < N; ++j) {
      one += square[i][j] * value(j, 9);
      other += square[j][i] * value(j, 9);
    }
    out[i] = 1.25 * one + 0.75 * other;
  }
}
static void gemver(double out[N][N], int parallel) {
#pragma omp parallel for simd if (parallel : parallel) collapse(2)
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j)
      out[i][j] = square[i][j] + value(i, 11) * value(j, 12) + value(i, 13) * value(j, 14);
}

int main(void) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < M; ++j) a[i][j] = value(i, j);
  for (int j = 0; j < M; ++j) x[j] = value(j, 77);
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) square[i][j] = value(j, i);
  for (int p = 0; p < 2; ++p) {
    atax(t[p], y[p], p);
    bicg(q[p], s[p], p);
    mvt(x1[p], x2[p], p);
    gesummv(g[p], p);
    gemver(v[p], p);
  }
  return report("atax", y[1], y[0], sizeof y[0]) + report("bicg q", q[1], q[0], sizeof q[0]) +
         report("bicg s", s[1], s[0], sizeof s[0]) + report("mvt 1", x1[1], x1[0], sizeof x1[0]) +
         report("mvt 2", x2[1], x2[0], sizeof x2[0]) + report("gesummv", g[1], g[0], sizeof g[0]) +
         report("gemver", v[1], v[0], sizeof v[0]);
}
