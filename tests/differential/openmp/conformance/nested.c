// Regions inside of regions, active or not; ancestors, team sizes; control variables.
#include <omp.h>
#include <stdio.h>

int main(void) {
  int wrong = 0, outer_threads = 1, inner_most = 0;
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(4) reduction(+ : wrong)
    {
      wrong += omp_get_num_threads() != 1 || omp_get_thread_num() != 0;
      wrong += omp_get_level() != 2;
      wrong += omp_get_ancestor_thread_num(1) != outer;
      wrong += omp_get_ancestor_thread_num(0) != 0 || omp_get_team_size(0) != 1;
      wrong += omp_get_team_size(2) != 1 || omp_get_ancestor_thread_num(3) != -1;
    }
  }
  printf("inactive: %d wrong\n", wrong);

  omp_set_max_active_levels(3);
  long sum = 0;
#pragma omp parallel num_threads(3) reduction(+ : wrong)
  {
    const int outer = omp_get_thread_num();
#pragma omp single
    outer_threads = omp_get_num_threads();
    for (int round = 0; round < 10; ++round) {
#pragma omp parallel num_threads(2) reduction(+ : wrong)
      {
        wrong += omp_get_ancestor_thread_num(1) != outer;
        wrong += omp_get_team_size(1) != outer_threads;
        wrong += omp_get_thread_num() >= omp_get_num_threads();
#pragma omp critical(most)
        if (omp_get_num_threads() > inner_most) inner_most = omp_get_num_threads();
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 30; ++i) {
#pragma omp atomic
          sum += i;
        }
#pragma omp single
        {
#pragma omp task
          {
#pragma omp atomic
            sum += 1000;
          }
        }
      }
    }
  }
  printf("active: %d wrong, sum %d, inner %d\n", wrong, sum == 10L * outer_threads * (435 + 1000),
         inner_most == 1 || inner_most == 2);

#pragma omp parallel num_threads(2)
  omp_set_num_threads(10 + omp_get_thread_num());
  omp_set_num_threads(1);
  printf("threads %d, levels %d, dynamic %d\n", omp_get_max_threads(), omp_get_max_active_levels(),
         omp_get_dynamic());
  omp_set_dynamic(1);
  printf("dynamic %d, in final %d, limit %d\n", omp_get_dynamic(), omp_in_final(),
         omp_get_thread_limit() > 0);
  const double start = omp_get_wtime();
  printf("time %d, tick %d\n", omp_get_wtime() >= start, omp_get_wtick() > 0);
  return 0;
}
