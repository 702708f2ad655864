// jacobi-1d, jacobi-2d, heat-3d, fdtd-2d, seidel-2d: neighbours, time steps with barriers between.
#include "kernel.h"

enum { N = 24, STEPS = 6, LINE = 300, CUBE = 10 };
static double line[2][2][LINE], plane[2][2][N][N], cube[2][2][CUBE][CUBE][CUBE];
static double ex[2][N][N], ey[2][N][N], hz[2][N][N], sweep[2][N][N];

static void jacobi_1d(double l[2][LINE], int parallel) {
#pragma omp parallel if (parallel)
  for (int t = 0; t < STEPS; ++t) {
    double* const from = l[t % 2];
    double* const to = l[1 - t % 2];
#pragma omp for
    for (int i = 1; i < LINE - 1; ++i) to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3.0;
  }
}
static void jacobi_2d(double p[2][N][N], int parallel) {
  for (int t = 0; t < STEPS; ++t) {
    double(*const from)[N] = p[t % 2];
    double(*const to)[N] = p[1 - t % 2];
#pragma omp parallel for if (parallel) schedule(static, 2)
    for (int i = 1; i < N - 1; ++i)
      for (int j = 1; j < N - 1; ++j)
        to[i][j] =
            0.2 * (from[i][j] + from[i][j - 1] + from[i][j + 1] + from[i - 1][j] + from[i + 1][j]);
  }
}
static void heat_3d(double c[2][CUBE][CUBE][CUBE], int parallel) {
#pragma omp parallel if (parallel)
  for (int t = 0; t < STEPS; ++t) {
    double(*const a)[CUBE][CUBE] = c[t % 2];
    double(*const b)[CUBE][CUBE] = c[1 - t % 2];
#pragma omp for collapse(3) schedule(static)
    for (int i = 1; i < CUBE - 1; ++i)
      for (int j = 1; j < CUBE - 1; ++j)
        for (int k = 1; k < CUBE - 1; ++k)
          b[i][j][k] = 0.125 * (a[i + 1][j][k] - 2 * a[i][j][k] + a[i - 1][j][k]) +
                       0.125 * (a[i][j + 1][k] - 2 * a[i][j][k] + a[i][j - 1][k]) +
                       0.125 * (a[i][j][k + 1] - 2 * a[i][j][k] + a[i][j][k - 1]) + a[i][j][k];
  }
}
static void fdtd_2d(double x[N][N], double y[N][N], double h[N][N], int parallel) {
#pragma omp parallel if (parallel)
  for (int t = 0; t < STEPS; ++t) {
#pragma omp single nowait
    for (int j = 0; j < N; ++j) y[0][j] = t;
#pragma omp for nowait
    for (int i = 1; i < N; ++i)
      for (int j = 0; j < N; ++j) y[i][j] -= 0.5 * (h[i][j] - h[i - 1][j]);
#pragma omp for
    for (int i = 0; i < N; ++i)
      for (int j = 1; j < N; ++j) x[i][j] -= 0.5 * (h[i][j] - h[i][j - 1]);
#pragma omp for
    for (int i = 0; i < N - 1; ++i)
      for (int j = 0; j < N - 1; ++j)
        h[i][j] -= 0.7 * (x[i][j + 1] - x[i][j] + y[i + 1][j] - y[i][j]);
  }
}
// In place: a wavefront, each point after those above and to the left.
static void seidel_2d(double p[N][N], int parallel) {
  for (int t = 0; t < STEPS; ++t) {
#pragma omp parallel for ordered(2) schedule(static, 1) if (parallel)
    for (int i = 1; i < N - 1; ++i)
      for (int j = 1; j < N - 1; ++j) {
#pragma omp ordered depend(sink : i - 1, j + 1) depend(sink : i - 1, j) depend(sink : i, j - 1)
        p[i][j] = (p[i - 1][j - 1] + p[i - 1][j] + p[i - 1][j + 1] + p[i][j - 1] + p[i][j] +
                   p[i][j + 1] + p[i + 1][j - 1] + p[i + 1][j] + p[i + 1][j + 1]) /
                  9.0;
#pragma omp ordered depend(source)
      }
  }
}

int main(void) {
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < LINE; ++i) line[p][0][i] = line[p][1][i] = value(i, 1);
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        plane[p][0][i][j] = plane[p][1][i][j] = sweep[p][i][j] = value(i, j);
        ex[p][i][j] = value(i, j + 1);
        ey[p][i][j] = value(i, j + 2);
        hz[p][i][j] = value(i, j + 3);
      }
    for (int i = 0; i < CUBE; ++i)
      for (int j = 0; j < CUBE; ++j)
        for (int k = 0; k < CUBE; ++k)
          cube[p][0][i][j][k] = cube[p][1][i][j][k] = value(i * CUBE + j, k);
    jacobi_1d(line[p], p);
    jacobi_2d(plane[p], p);
    heat_3d(cube[p], p);
    fdtd_2d(ex[p], ey[p], hz[p], p);
    seidel_2d(sweep[p], p);
  }
  return report("jacobi-1d", line[1], line[0], sizeof line[0]) +
         report("jacobi-2d", plane[1], plane[0], sizeof plane[0]) +
         report("heat-3d", cube[1], cube[0], sizeof cube[0]) +
         report("fdtd-2d", hz[1], hz[0], sizeof hz[0]) +
         report("seidel-2d", sweep[1], sweep[0], sizeof sweep[0]);
}
