// ordered, with every schedule; ordered(n) with depend(sink) and depend(source).
#include <omp.h>
#include <stdio.h>

enum { kSide = 20, kDepth = 6 };
static int grid[kSide + 1][kSide + 1];
static int cube[kSide][kSide][kDepth];

#define DO_PRAGMA(text) _Pragma(#text)
#define IN_ORDER(clause)                                           \
  do {                                                             \
    int next = 0, wrong = 0;                                       \
    DO_PRAGMA(omp parallel for ordered clause)                     \
    for (int i = 0; i < 90; ++i) {                                 \
      volatile int work = 0;                                       \
      for (int j = 0; j < (i * 37) % 50; ++j) work += j;           \
      if (i % 7 != 3) {                                            \
        DO_PRAGMA(omp ordered)                                     \
        {                                                          \
          wrong += next > i;                                       \
          next = i;                                                \
        }                                                          \
      }                                                            \
    }                                                              \
    printf("%s: last %d, wrong %d\n", #clause, next, wrong);       \
  } while (0)

int main(void) {
  IN_ORDER(schedule(static));
  IN_ORDER(schedule(static, 2));
  IN_ORDER(schedule(dynamic));
  IN_ORDER(schedule(dynamic, 4));
  IN_ORDER(schedule(guided));
  omp_set_schedule(omp_sched_dynamic, 3);
  IN_ORDER(schedule(runtime));
  unsigned long long sum = 0;
#pragma omp parallel for ordered schedule(dynamic)
  for (unsigned long long i = 1ull << 63; i < (1ull << 63) + 40; ++i) {
#pragma omp ordered
    sum = sum * 3 + i;
  }
  printf("ull: %llu\n", sum);
  printf("printed in order:");
#pragma omp parallel for ordered schedule(static, 1)
  for (int i = 30; i > 0; i -= 3) {
#pragma omp ordered
    printf(" %d", i);
  }
  printf("\n");

  for (int i = 0; i <= kSide; ++i) grid[i][0] = grid[0][i] = 1;
#pragma omp parallel for ordered(2) schedule(dynamic)
  for (int i = 1; i <= kSide; ++i)
    for (int j = 1; j <= kSide; ++j) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
      grid[i][j] = (grid[i - 1][j] + grid[i][j - 1]) % 10007;
#pragma omp ordered depend(source)
    }
  printf("wavefront: %d\n", grid[kSide][kSide]);

#pragma omp parallel for ordered(3) schedule(static, 1)
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j)
      for (int k = 0; k < kDepth; ++k) {
#pragma omp ordered depend(sink : i - 1, j + 1, k) depend(sink : i - 2, j, k + 1)
        const int a = i > 0 && j + 1 < kSide ? cube[i - 1][j + 1][k] : 1;
        const int b = i > 1 && k + 1 < kDepth ? cube[i - 2][j][k + 1] : 2;
        cube[i][j][k] = (3 * a + b + k) % 9973;
#pragma omp ordered depend(source)
      }
  printf("cube: %d %d\n", cube[kSide - 1][0][0], cube[kSide - 1][kSide - 1][kDepth - 1]);
  int chain = 0, broken = 0;
#pragma omp parallel for ordered(1) schedule(guided)
  for (int i = 0; i < 100; ++i) {
#pragma omp ordered depend(sink : i - 1)
    broken += chain != i;
    ++chain;
#pragma omp ordered depend(source)
  }
  printf("chain: %d, broken %d\n", chain, broken);
  return 0;
}
