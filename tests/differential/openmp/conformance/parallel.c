// parallel: teams, numbers, data sharing, if, num_threads, levels.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMost = 70000 };
static unsigned char seen[kMost];
static int counter = 5;
#pragma omp threadprivate(counter)

int main(void) {
  int threads = 0, wrong = 0;
#pragma omp parallel reduction(+ : wrong)
  {
    const int id = omp_get_thread_num();
    if (id < 0 || id >= omp_get_num_threads() || id >= kMost) ++wrong;
    ++seen[id];
#pragma omp master
    threads = omp_get_num_threads();
    if (!omp_in_parallel() && omp_get_num_threads() > 1) ++wrong;
    if (omp_get_level() != 1) ++wrong;
  }
  for (int i = 0; i < threads; ++i) wrong += seen[i] != 1;
  for (int i = threads; i < kMost; ++i) wrong += seen[i] != 0;
  printf("one thread each: %s\n", wrong == 0 ? "yes" : "no");

  int shared = 0, mine = 7, copy = 3;
#pragma omp parallel private(mine) firstprivate(copy) shared(shared)
  {
    mine = copy + 1;
    copy = mine;
#pragma omp atomic
    shared += mine == 4 && copy == 4;
  }
  printf("data: %d %d %d\n", shared == threads, mine, copy);

  int inside = -1;
#pragma omp parallel if (mine == 0)
  inside = omp_get_num_threads();
  printf("if(0): %d thread\n", inside);

#pragma omp parallel num_threads(3)
#pragma omp single
  inside = omp_get_num_threads();
  printf("num_threads(3): %s\n",
         inside == (threads < 3 ? threads : 3) || inside == 3 ? "ok" : "wrong");

  omp_set_num_threads(2);
#pragma omp parallel
#pragma omp single
  inside = omp_get_num_threads();
  printf("omp_set_num_threads(2): %s\n", inside == 1 || inside == 2 ? "ok" : "wrong");
  omp_set_num_threads(threads);

  counter = 42;
  int copied = 0;
#pragma omp parallel copyin(counter)
  {
    counter += omp_get_thread_num();
#pragma omp atomic
    copied += counter == 42 + omp_get_thread_num();
  }
  printf("copyin: %d\n", copied == threads);
  int kept = 0;
#pragma omp parallel reduction(+ : kept)
  kept += counter == 42 + omp_get_thread_num();
  printf("threadprivate kept: %d\n", kept == threads);

  int rounds = 0;
  for (int i = 0; i < 200; ++i) {
#pragma omp parallel num_threads(1 + i % 5)
    {
#pragma omp atomic
      rounds += omp_get_num_threads() == 1 ? 60 : 60 / omp_get_num_threads();
    }
  }
  printf("200 regions: %d\n", rounds);
  printf("after: level %d, threads %d, in parallel %d\n", omp_get_level(), omp_get_num_threads(),
         omp_in_parallel());
  return 0;
}
