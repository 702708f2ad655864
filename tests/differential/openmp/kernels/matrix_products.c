// gemm, 2mm, 3mm, syrk: products of matrices.
#include "kernel.h"

enum { N = 40, M = 36, K = 32 };
static double a[N][K], b[K][M], c[2][N][M], d[M][N], e[2][N][N], f[2][N][N], s[2][N][N];

static void gemm(double out[N][M], int parallel) {
#pragma omp parallel for if (parallel) schedule(static)
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < M; ++j) {
      out[i][j] = value(i, j) * 0.5;
      for (int k = 0; k < K; ++k) out[i][j] += 1.5 * a[i][k] * b[k][j];
    }
}
static void mm2(double in[N][M], double out[N][N], int parallel) {
#pragma omp parallel for if (parallel) collapse(2) schedule(dynamic, 3)
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      out[i][j] = 0;
      for (int k = 0; k < M; ++k) out[i][j] += in[i][k] * d[k][j];
    }
}
static void mm3(double in[N][N], double out[N][N], int parallel) {
#pragma omp parallel if (parallel)
#pragma omp for schedule(guided)
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      out[i][j] = 0;
      for (int k = 0; k < N; ++k) out[i][j] += in[i][k] * in[k][j];
    }
}
static void syrk(double out[N][N], int parallel) {
#pragma omp parallel for if (parallel) schedule(static, 1)
  for (int i = 0; i < N; ++i)
    for (int j = 0; j <= i; ++j) {
      out[i][j] = value(i, j);
      for (int k = 0; k < K; ++k) out[i][j] += a[i][k] * a[j][k];
    }
}

int main(void) {
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < K; ++k) a[i][k] = value(i, k);
  for (int k = 0; k < K; ++k)
    for (int j = 0; j < M; ++j) b[k][j] = value(j, k);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) d[i][j] = value(i + 7, j);
  for (int p = 0; p < 2; ++p) {
    gemm(c[p], p);
    mm2(c[p], e[p], p);
    mm3(e[p], f[p], p);
    syrk(s[p], p);
  }
  return report("gemm", c[1], c[0], sizeof c[0]) + report("2mm", e[1], e[0], sizeof e[0]) +
         report("3mm", f[1], f[0], sizeof f[0]) + report("syrk", s[1], s[0], sizeof s[0]);
}
