// OpenMP with more threads than cores.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  long sum = 0, tasks = 0;
  int most = 0;
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel reduction(+ : sum) reduction(max : most)
    {
      most = omp_get_num_threads();
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 2000; ++i) sum += i % 7;
#pragma omp critical
      ++tasks;
#pragma omp barrier
#pragma omp single
      for (int i = 0; i < 50; ++i) {
#pragma omp task
#pragma omp atomic
        ++tasks;
      }
    }
  }
  printf("openmp: %d threads, %ld, %ld\n", most, sum, tasks);
  return 0;
}
