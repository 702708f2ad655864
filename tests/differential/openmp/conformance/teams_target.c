// teams and target: there is no device, so both run on the host.
#include <omp.h>
#include <stdio.h>

int main(void) {
  int a[100], sum = 0;
  for (int i = 0; i < 100; ++i) a[i] = i;
#pragma omp target teams distribute parallel for map(tofrom : a)
  for (int i = 0; i < 100; ++i) a[i] *= 2;
#pragma omp target parallel for map(tofrom : sum) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += a[i];
  printf("target: %d\n", sum);
  int private_one = 5, teams = 0;
#pragma omp target firstprivate(private_one) map(tofrom : sum)
  {
    private_one = 100;
    sum += private_one;
  }
  printf("firstprivate: %d %d\n", private_one, sum);
#pragma omp teams num_teams(3) reduction(+ : teams)
  teams += omp_get_num_teams() * 10 + omp_get_team_num();
  printf("teams: %d\n", teams);
  long total = 0;
#pragma omp teams num_teams(2) reduction(+ : total)
#pragma omp distribute parallel for reduction(+ : total)
  for (int i = 0; i < 1000; ++i) total += i;
  printf("distribute: %ld\n", total);
  printf("devices %d, on the host %d\n", omp_get_num_devices(), omp_is_initial_device());
#pragma omp loop bind(thread)
  for (int i = 0; i < 10; ++i) total += i;
#pragma omp parallel
#pragma omp loop reduction(+ : total)
  for (int i = 0; i < 10; ++i) total += i;
  printf("loop: %ld\n", total);

  // A target region has threads, and a limit to them, of its own.
  int limit = 0, inside = 0, level = -1;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) shared(limit, inside, level)
  if (omp_get_thread_num() == 0) {
#pragma omp target thread_limit(2) map(from : limit, inside, level)
    {
      limit = omp_get_thread_limit();
      level = omp_get_level();
#pragma omp parallel num_threads(4)
#pragma omp single
      inside = omp_get_num_threads();
    }
  }
  printf("target's limit: %d, level %d, threads %d\n", limit, level,
         inside == 2 || omp_get_num_procs() < 3);
  return 0;
}
