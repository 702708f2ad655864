// Locks that many threads want at once, handed over thousands of times: no waiter may be forgotten.
#include <omp.h>
#include <stdio.h>

enum { kTimes = 20000 };

int main(void) {
  long critical = 0, locked = 0, nested = 0, tasks = 0;
  omp_lock_t lock;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
#pragma omp parallel
  {
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kTimes; ++i) {
#pragma omp critical
      ++critical;
    }
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kTimes; ++i) {
      omp_set_lock(&lock);
      ++locked;
      omp_unset_lock(&lock);
    }
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kTimes; ++i) {
      omp_set_nest_lock(&nest);
      ++nested;
      omp_unset_nest_lock(&nest);
    }
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kTimes / 10; ++i) {
#pragma omp task
      {
#pragma omp atomic
        ++tasks;
      }
#pragma omp taskwait
    }
  }
  printf("critical %ld, locked %ld, nested %ld, tasks %ld\n", critical, locked, nested, tasks);
  return 0;
}
