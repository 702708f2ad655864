// lu, cholesky, trisolv, gramschmidt, floyd-warshall, correlation, covariance, nussinov.
#include "kernel.h"

enum { N = 32 };
static double lu_m[2][N][N], chol[2][N][N], tri[2][N][N], gram[2][N][N], r[2][N][N];
static double corr[2][N][N], cov[2][N][N], data[N + 8][N];
static int paths[2][N][N], fold[2][N][N];

static void lu(double m[N][N], int parallel) {
#pragma omp parallel if (parallel)
  for (int k = 0; k < N; ++k) {
#pragma omp for
    for (int i = k + 1; i < N; ++i) m[i][k] /= m[k][k];
#pragma omp for collapse(2)
    for (int i = k + 1; i < N; ++i)
      for (int j = k + 1; j < N; ++j) m[i][j] -= m[i][k] * m[k][j];
  }
}
// By blocks, as tasks.
enum { B = 8 };
static void chol_column(double m[N][N], int k) {
  for (int j = k; j < k + B; ++j) {
    for (int p = 0; p < j; ++p) m[j][j] -= m[j][p] * m[j][p];
    m[j][j] = sqrt(m[j][j]);
    for (int i = j + 1; i < k + B; ++i) {
      for (int p = 0; p < j; ++p) m[i][j] -= m[i][p] * m[j][p];
      m[i][j] /= m[j][j];
    }
  }
}
static void chol_block(double m[N][N], int row, int k) {
  for (int i = row; i < row + B; ++i)
    for (int j = k; j < k + B; ++j) {
      for (int p = 0; p < j; ++p) m[i][j] -= m[i][p] * m[j][p];
      m[i][j] /= m[j][j];
    }
}
static void cholesky(double m[N][N], int parallel) {
#pragma omp parallel if (parallel)
#pragma omp single
  for (int k = 0; k < N; k += B) {
#pragma omp task depend(inout : m[k][k]) firstprivate(k)
    chol_column(m, k);
    for (int row = k + B; row < N; row += B) {
#pragma omp task depend(in : m[k][k]) depend(inout : m[row][k]) firstprivate(k, row)
      chol_block(m, row, k);
    }
    // The next diagonal block needs all blocks to its left.
#pragma omp taskwait
  }
}
static void trisolv(double m[N][N], int parallel) {  // N systems at once
#pragma omp parallel for if (parallel) schedule(dynamic)
  for (int c = 0; c < N; ++c)
    for (int i = 0; i < N; ++i) {
      m[c][i] = value(c, i);
      for (int j = 0; j < i; ++j) m[c][i] -= chol[0][i][j] * m[c][j];
      m[c][i] /= chol[0][i][i];
    }
}
static void gramschmidt(double q[N][N], double out[N][N], int parallel) {
  for (int k = 0; k < N; ++k) {
    double norm = 0;
    for (int i = 0; i < N; ++i) norm += q[i][k] * q[i][k];
    out[k][k] = sqrt(norm);
#pragma omp parallel for if (parallel)
    for (int i = 0; i < N; ++i) q[i][k] /= out[k][k];
#pragma omp parallel for if (parallel) schedule(dynamic, 2)
    for (int j = k + 1; j < N; ++j) {
      out[k][j] = 0;
      for (int i = 0; i < N; ++i) out[k][j] += q[i][k] * q[i][j];
      for (int i = 0; i < N; ++i) q[i][j] -= q[i][k] * out[k][j];
    }
  }
}
static void floyd_warshall(int p[N][N], int parallel) {
#pragma omp parallel if (parallel)
  for (int k = 0; k < N; ++k) {
#pragma omp for
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j)
        if (p[i][k] + p[k][j] < p[i][j] && i != k && j != k) p[i][j] = p[i][k] + p[k][j];
  }
}
static void correlation(double c[N][N], double v[N][N], int parallel) {
  double mean[N], deviation[N];
  const int rows = N + 8;
#pragma omp parallel if (parallel)
  {
#pragma omp for
    for (int j = 0; j < N; ++j) {
      mean[j] = deviation[j] = 0;
      for (int i = 0; i < rows; ++i) mean[j] += data[i][j];
      mean[j] /= rows;
      for (int i = 0; i < rows; ++i)
        deviation[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
      deviation[j] = sqrt(deviation[j] / rows);
    }
#pragma omp for schedule(guided)
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        v[i][j] = 0;
        for (int k = 0; k < rows; ++k) v[i][j] += (data[k][i] - mean[i]) * (data[k][j] - mean[j]);
        c[i][j] = v[i][j] / (rows * deviation[i] * deviation[j]);
        v[i][j] /= rows - 1;
      }
  }
}
static void nussinov(int f[N][N], int parallel) {  // by diagonals
  for (int d = 1; d < N; ++d) {
#pragma omp parallel for if (parallel) schedule(static)
    for (int i = 0; i < N - d; ++i) {
      const int j = i + d, pair = (i * 7 + j * 3) % 4 == 3;
      int best = f[i][j - 1] > f[i + 1][j] ? f[i][j - 1] : f[i + 1][j];
      if (d > 1 && f[i + 1][j - 1] + pair > best) best = f[i + 1][j - 1] + pair;
      for (int k = i + 1; k < j; ++k)
        if (f[i][k] + f[k + 1][j] > best) best = f[i][k] + f[k + 1][j];
      f[i][j] = best;
    }
  }
}

int main(void) {
  for (int i = 0; i < N + 8; ++i)
    for (int j = 0; j < N; ++j) data[i][j] = value(i, j + 50);
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        lu_m[p][i][j] = value(i, j) + (i == j) * N;
        chol[p][i][j] = value(i < j ? i : j, i < j ? j : i) + (i == j) * N;
        gram[p][i][j] = value(i, j) + (i == j);
        paths[p][i][j] = i == j ? 0 : (i * 31 + j * 17) % 97 + 1;
      }
    lu(lu_m[p], p);
    cholesky(chol[p], p);
    trisolv(tri[p], p);
    gramschmidt(gram[p], r[p], p);
    floyd_warshall(paths[p], p);
    correlation(corr[p], cov[p], p);
    nussinov(fold[p], p);
  }
  return report("lu", lu_m[1], lu_m[0], sizeof lu_m[0]) +
         report("cholesky", chol[1], chol[0], sizeof chol[0]) +
         report("trisolv", tri[1], tri[0], sizeof tri[0]) +
         report("gramschmidt", r[1], r[0], sizeof r[0]) +
         report("floyd-warshall", paths[1], paths[0], sizeof paths[0]) +
         report("correlation", corr[1], corr[0], sizeof corr[0]) +
         report("covariance", cov[1], cov[0], sizeof cov[0]) +
         report("nussinov", fold[1], fold[0], sizeof fold[0]);
}
