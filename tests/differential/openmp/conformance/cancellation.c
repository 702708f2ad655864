// env: OMP_CANCELLATION=true
// cancel and cancellation point for every construct.
#include <omp.h>
#include <stdio.h>

int main(void) {
  printf("cancellation %d\n", omp_get_cancellation());
  int after = 0, found = -1;
#pragma omp parallel
  {
#pragma omp cancel parallel
#pragma omp atomic
    ++after;
  }
  printf("parallel: %d went on\n", after);
#pragma omp parallel shared(found)
  {
#pragma omp for schedule(dynamic)
    for (long i = 0; i < 1L << 40; ++i) {
      if (i == 50) {
#pragma omp atomic write
        found = (int)i;
#pragma omp cancel for
      }
#pragma omp cancellation point for
      if (i + 1 == 1L << 40) {  // or years later
#pragma omp atomic
        ++after;
      }
    }
  }
  printf("for: found %d, after %d\n", found, after);
  int statics = 0;
#pragma omp parallel for
  for (int i = 0; i < 1000; ++i) {
#pragma omp cancel for if (i >= 0)
#pragma omp atomic
    ++statics;
  }
  printf("static for: %d\n", statics);
  int sections = 0;
#pragma omp parallel sections
  {
#pragma omp section
    {
#pragma omp cancel sections
      ++sections;
    }
  }
  printf("sections: %d\n", sections);
  int tasks = 0, groups = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    {
#pragma omp task
      {
#pragma omp cancel taskgroup
        ++groups;
      }
#pragma omp taskwait
      for (int i = 0; i < 50; ++i) {
#pragma omp task
        {
#pragma omp atomic
          ++tasks;
        }
      }
    }
  }
  printf("taskgroup: %d, tasks %d\n", groups, tasks);
  int phase = 0, went_on = 0;
#pragma omp parallel
  {
#pragma omp barrier
    if (omp_get_thread_num() == 0) {
#pragma omp atomic
      ++phase;
#pragma omp cancel parallel
    }
#pragma omp barrier
#pragma omp cancellation point parallel
#pragma omp atomic
    ++went_on;
  }
  printf("barrier: %d, went on %d\n", phase, went_on);
  // Who is still in an earlier loop finishes it.
  int turns = 0, is_cancelling = 0;
#pragma omp parallel num_threads(3)
  {
    const int waits = omp_get_num_threads() == 3;
#pragma omp for ordered schedule(static, 1) nowait
    for (int i = 0; i < 3; ++i) {
#pragma omp ordered
      {
        ++turns;
        if (i == 1 && waits) {
          int cancelled = 0;
          while (!cancelled) {
#pragma omp atomic read
            cancelled = is_cancelling;
          }
          for (volatile int later = 0; later < 100000; ++later) {
          }
        }
      }
    }
    if (omp_get_thread_num() == 0) {
#pragma omp atomic write
      is_cancelling = 1;
#pragma omp cancel parallel
    }
  }
  printf("ordered: %d turns\n", turns);
  int again = 0;
#pragma omp parallel for reduction(+ : again)
  for (int i = 0; i < 100; ++i) again += i;
  printf("afterwards: %d\n", again);
  return 0;
}
