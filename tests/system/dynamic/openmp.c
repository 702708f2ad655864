#include <omp.h>
#include <stdio.h>

int main(void) {
  long sum = 0;
  omp_set_dynamic(0);
#pragma omp parallel for reduction(+ : sum) num_threads(4)
  for (int i = 0; i < 10000; ++i) sum += i % 7;
  printf("%ld\n", sum);
  return 0;
}
