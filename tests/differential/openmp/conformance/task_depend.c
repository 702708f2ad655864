// depend: chains, readers and writers, wavefronts, depend objects, taskwait depend, task reductions.
#include <omp.h>
#include <stdio.h>

enum { kBlocks = 8 };
static int block[kBlocks + 1][kBlocks + 1];

int main(void) {
  int chain = 1;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 30; ++i) {
#pragma omp task depend(inout : chain) firstprivate(i)
    chain = (chain * 3 + i) % 10007;
  }
  printf("chain %d\n", chain);

  int value = 0, readers[6] = {0}, wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int round = 1; round <= 5; ++round) {
#pragma omp task depend(out : value) firstprivate(round)
    value = round;
    for (int i = 0; i < 6; ++i) {
#pragma omp task depend(in : value) firstprivate(i, round)
      readers[i] += value == round;
    }
#pragma omp task depend(inout : value) firstprivate(round)
    {
      for (int i = 0; i < 6; ++i) wrong += readers[i] != round;
    }
  }
  printf("readers between writers: wrong %d\n", wrong);

  for (int i = 0; i <= kBlocks; ++i) block[i][0] = block[0][i] = i;
#pragma omp parallel
#pragma omp single
  for (int i = 1; i <= kBlocks; ++i)
    for (int j = 1; j <= kBlocks; ++j) {
#pragma omp task depend(in : block[i - 1][j], block[i][j - 1]) depend(out : block[i][j])
      block[i][j] = (2 * block[i - 1][j] + block[i][j - 1]) % 1009;
    }
  printf("wavefront %d\n", block[kBlocks][kBlocks]);

  int a = 0, b = 0, c = 0, seen = -1;
#pragma omp parallel
#pragma omp single
  {
    omp_depend_t object;
#pragma omp depobj(object) depend(inout : a)
#pragma omp task depend(depobj : object)
    a = 1;
#pragma omp task depend(depobj : object)
    a = a * 10 + 2;
#pragma omp depobj(object) update(in)
#pragma omp task depend(depobj : object) depend(out : b)
    b = a;
#pragma omp depobj(object) destroy
#pragma omp task depend(mutexinoutset : c) depend(in : b)
    c += b;
#pragma omp task depend(mutexinoutset : c)
    c += 1000;
#pragma omp taskwait depend(in : b)
    seen = b;
#pragma omp task if (0) depend(in : c)
    seen = seen * 10000 + c;
#pragma omp task depend(iterator(i = 0 : 3), in : block[i][i]) depend(out : a)
    a = -a;
  }
  printf("objects: a %d, b %d, c %d, seen %d\n", a, b, c, seen);

  long total = 0, by_region = 0, by_loop = 0, by_sections = 0;
  int threads = 1;
#pragma omp parallel
#pragma omp single
  {
    threads = omp_get_num_threads();
#pragma omp taskgroup task_reduction(+ : total)
    {
      for (int i = 0; i < 50; ++i) {
#pragma omp task in_reduction(+ : total) firstprivate(i)
        {
          total += i;
#pragma omp task in_reduction(+ : total)
          total += 1;
        }
      }
    }
  }
  printf("task_reduction %ld\n", total);
#pragma omp parallel reduction(task, + : by_region)
  {
#pragma omp single
    for (int i = 0; i < 20; ++i) {
#pragma omp task in_reduction(+ : by_region) firstprivate(i)
      by_region += i;
    }
#pragma omp for reduction(task, + : by_loop) schedule(dynamic)
    for (int i = 0; i < 20; ++i) {
      by_loop += i;
#pragma omp task in_reduction(+ : by_loop)
      by_loop += 100;
    }
#pragma omp sections reduction(task, + : by_sections)
    {
#pragma omp section
      {
#pragma omp task in_reduction(+ : by_sections)
        by_sections += 5;
      }
#pragma omp section
      by_sections += 7;
    }
  }
  printf("reduction(task): %ld %ld %ld\n", by_region, by_loop, by_sections);
  return threads < 1;
}
