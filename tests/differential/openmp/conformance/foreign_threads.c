// cores: 12
// POSIX threads of the program's own that open parallel regions.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

static long sums[3];

static void* work(void* argument) {
  const long id = (long)argument;
  long sum = 0;
  for (int round = 0; round < 5; ++round) {
#pragma omp parallel for num_threads(3) reduction(+ : sum) schedule(dynamic, 4)
    for (int i = 0; i < 100; ++i) sum += i * (id + 1);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(sum)
      sum += 7;
    }
  }
  sums[id] = sum;
  return 0;
}

int main(void) {
  long before = 0;
#pragma omp parallel for reduction(+ : before) num_threads(4)
  for (int i = 0; i < 10; ++i) before += i;
  pthread_t threads[3];
  int started[3];
  for (long i = 0; i < 3; ++i) started[i] = pthread_create(&threads[i], 0, work, (void*)i);
  for (long i = 0; i < 3; ++i) {
    if (started[i] == 0)
      pthread_join(threads[i], 0);
    else
      work((void*)i);  // no core is free
  }
  long after = 0;
#pragma omp parallel for reduction(+ : after)
  for (int i = 0; i < 10; ++i) after += i;
  printf("%ld %ld %ld %ld %ld\n", before, sums[0], sums[1], sums[2], after);
  return 0;
}
