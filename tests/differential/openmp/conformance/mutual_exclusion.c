// critical, atomic in all its forms, locks.
#include <omp.h>
#include <stdio.h>

static long plain, named, nested_total;
static omp_lock_t lock;
static omp_nest_lock_t nest;

static void twice(void) {
  omp_set_nest_lock(&nest);
  ++nested_total;
  omp_unset_nest_lock(&nest);
}

int main(void) {
  int inside = 0, wrong = 0, threads = 1;
#pragma omp parallel reduction(+ : wrong)
  {
#pragma omp single
    threads = omp_get_num_threads();
    for (int i = 0; i < 4; ++i) {
#pragma omp critical
      {
        wrong += inside != 0;
        inside = 1;
        ++plain;
        inside = 0;
      }
#pragma omp critical(other)
      ++named;
    }
  }
  printf("critical: %d %d, wrong %d\n", plain == 4L * threads, named == 4L * threads, wrong);

  int n = 0, x = 0, before = 0, mask = -1;
  double d = 0;
  long double wide = 0;
  unsigned char byte = 0;
  struct {
    double a, b;
  } pair = {0, 0};
  long captured = 0;
#pragma omp parallel reduction(+ : captured)
  {
    int old;
#pragma omp atomic
    n += 2;
#pragma omp atomic
    d += 0.5;
#pragma omp atomic
    wide += 1;
#pragma omp atomic
    ++byte;
#pragma omp atomic
    mask &= ~(1 << omp_get_thread_num() % 8);
#pragma omp atomic capture
    old = x++;
    captured += old;
#pragma omp atomic capture
    {
      old = before;
      before = before + 1;
    }
    captured -= old;
#pragma omp atomic read
    old = x;
    captured += old <= 0;
#pragma omp atomic write
    pair.a = 1.0;
#pragma omp atomic update seq_cst
    pair.b = 2.0 - pair.b;
  }
  printf("atomic: %d %d %d %d %d %d %.0f %.0f\n", n == 2 * threads, d == 0.5 * threads,
         wide == threads, byte == threads % 256, x == threads && before == threads, captured == 0,
         pair.a, pair.b == (threads % 2 ? 2.0 : 0.0) ? 1.0 : 0.0);

  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
  int held = 0, tries = 0;
#pragma omp parallel reduction(+ : wrong, tries)
  {
    for (int i = 0; i < 3; ++i) {
      omp_set_lock(&lock);
      wrong += held++ != 0;
      --held;
      omp_unset_lock(&lock);
      omp_set_nest_lock(&nest);
      twice();
      wrong += omp_test_nest_lock(&nest) != 2;
      omp_unset_nest_lock(&nest);
      twice();
      omp_unset_nest_lock(&nest);
    }
    while (!omp_test_lock(&lock)) {
#pragma omp taskyield
    }
    ++tries;
    omp_unset_lock(&lock);
  }
  printf("locks: wrong %d, nested %d, tried %d\n", wrong, nested_total == 6L * threads,
         tries == threads);
  omp_set_lock(&lock);
  printf("test of a taken lock: %d\n", omp_test_lock(&lock));
  omp_unset_lock(&lock);
  omp_destroy_lock(&lock);
  omp_destroy_nest_lock(&nest);
  return 0;
}
