// sections, single, copyprivate, master, masked, nowait, barriers between phases.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  int done[6] = {0};
#pragma omp parallel sections
  {
#pragma omp section
    ++done[0];
#pragma omp section
    ++done[1];
#pragma omp section
    ++done[2];
  }
#pragma omp parallel
  {
#pragma omp sections nowait
    {
#pragma omp section
        {
#pragma omp atomic
            ++done[3];
  }
#pragma omp section
  {
#pragma omp atomic
    ++done[4];
  }
}
#pragma omp sections
{
  {
#pragma omp atomic
    ++done[5];
  }
}
}
for (int i = 0; i < 6; ++i) printf("%d ", done[i]);
int last = 0;
#pragma omp parallel sections lastprivate(last)
{
#pragma omp section
  last = 1;
#pragma omp section
  last = 2;
}
printf("last %d\n", last);

int singles = 0, masters = 0, wrong = 0, threads = 1;
#pragma omp parallel reduction(+ : wrong)
{
  for (int round = 0; round < 40; ++round) {
#pragma omp single
    ++singles;
    if (singles != round + 1) ++wrong;
#pragma omp barrier
  }
#pragma omp master
  ++masters;
#pragma omp masked filter(0)
  ++masters;
  threads = omp_get_num_threads();
}
printf("single %d, master %d, wrong %d\n", singles, masters, wrong);

int copied = 0;
#pragma omp parallel reduction(+ : copied)
{
  for (int round = 0; round < 10; ++round) {
    int value = -1, more[3] = {0, 0, 0};
#pragma omp single copyprivate(value, more)
    {
      value = 100 + round;
      more[2] = round;
    }
    copied += value == 100 + round && more[2] == round;
  }
}
printf("copyprivate: %d\n", copied == 10 * threads);

int nowaits = 0;
#pragma omp parallel
for (int round = 0; round < 100; ++round) {
#pragma omp single nowait
  {
#pragma omp atomic
    ++nowaits;
  }
}
printf("single nowait: %d\n", nowaits);

int* const phase = calloc((size_t)threads, sizeof *phase);
int late = 0;
#pragma omp parallel reduction(+ : late)
{
  const int id = omp_get_thread_num(), count = omp_get_num_threads();
  for (int round = 1; round <= 20; ++round) {
    phase[id] = round;
#pragma omp barrier
    late += phase[(id + 1) % count] != round;
    late += phase[(id + count - 1) % count] != round;
#pragma omp barrier
  }
}
printf("barriers: %d late\n", late);
free(phase);
return 0;
}
