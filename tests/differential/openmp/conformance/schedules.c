// for: each schedule, with bounds of both signs and types; every iteration exactly once.
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { kMost = 3000 };
static unsigned char hits[kMost];

static void check(const char* name, int count) {
  int wrong = 0;
  for (int i = 0; i < kMost; ++i) wrong += hits[i] != (i < count);
  if (wrong != 0) printf("%s, %d iterations: %d wrong\n", name, count, wrong);
  memset(hits, 0, sizeof hits);
}

#define HIT(i) _Pragma("omp atomic") ++hits[i]
#define FOR(schedule_clause)                                                             \
  do {                                                                                   \
    for (int count = 0; count <= kMost; count = count * 3 + 1) {                         \
      _Pragma("omp parallel") {                                                          \
        DO_PRAGMA(omp for schedule_clause)                                               \
        for (int i = 0; i < count; ++i) { HIT(i); }                                      \
        DO_PRAGMA(omp single)                                                            \
        check("up " #schedule_clause, count);                                            \
        DO_PRAGMA(omp for schedule_clause)                                               \
        for (long i = 7 * (count - 1) - 50; i >= -50; i -= 7) { HIT((i + 50) / 7); }     \
        DO_PRAGMA(omp single)                                                            \
        check("down " #schedule_clause, count);                                          \
        DO_PRAGMA(omp for schedule_clause)                                               \
        for (unsigned long long i = ULLONG_MAX - 10 - 3 * (unsigned long long)count;     \
             i < ULLONG_MAX - 10; i += 3) {                                              \
          HIT((i - (ULLONG_MAX - 10 - 3 * (unsigned long long)count)) / 3);              \
        }                                                                                \
        DO_PRAGMA(omp single)                                                            \
        check("ull " #schedule_clause, count);                                           \
        DO_PRAGMA(omp for schedule_clause nowait)                                        \
        for (int i = 0; i < count; i += 2) { HIT(i); }                                   \
        DO_PRAGMA(omp for schedule_clause nowait)                                        \
        for (int i = 1; i < count; i += 2) { HIT(i); }                                   \
      }                                                                                  \
      check("nowait " #schedule_clause, count);                                          \
      DO_PRAGMA(omp parallel for schedule_clause)                                        \
      for (int i = 0; i < count; ++i) { HIT(i); }                                        \
      check("combined " #schedule_clause, count);                                        \
    }                                                                                    \
    printf("done: %s\n", #schedule_clause);                                              \
  } while (0)
#define DO_PRAGMA(text) _Pragma(#text)

int main(void) {
  FOR(schedule(static));
  FOR(schedule(static, 1));
  FOR(schedule(static, 16));
  FOR(schedule(dynamic));
  FOR(schedule(dynamic, 7));
  FOR(schedule(guided));
  FOR(schedule(guided, 5));
  FOR(schedule(monotonic : dynamic, 2));
  FOR(schedule(nonmonotonic : guided, 3));
  FOR(schedule(auto));
  omp_set_schedule(omp_sched_static, 3);
  FOR(schedule(runtime));
  omp_set_schedule(omp_sched_dynamic, 0);
  FOR(schedule(nonmonotonic : runtime));
  omp_set_schedule(omp_sched_guided, 4);
  FOR(schedule(monotonic : runtime));

  int last = -1;
  long sum = 0;
#pragma omp parallel for lastprivate(last) reduction(+ : sum) collapse(3) schedule(dynamic, 5)
  for (int i = 0; i < 10; ++i)
    for (int j = 10; j > 0; --j)
      for (int k = 0; k < 10; k += 2) {
        last = i * 100 + j * 10 + k;
        sum += last;
      }
  printf("collapse: %d %ld\n", last, sum);
  sum = 0;
#pragma omp parallel for reduction(+ : sum) collapse(2)
  for (int i = 0; i < 50; ++i)
    for (int j = i; j < 50; ++j) sum += i * j;
  printf("triangle: %ld\n", sum);
  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  printf("schedule: %d %d\n", (int)kind, chunk);
  return 0;
}
