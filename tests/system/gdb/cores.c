// What a debugger is tried on: cores of one address space that compute, meet, wait, and fault.
// Arguments: "result" (the default), "fault", "spin", "lonely".
#include "gpusim_guest.h"

enum { kMostCores = 4096 };

int results[kMostCores];
int total;
volatile int go;
volatile int turns;

__attribute__((noinline)) int square(int x) {
  int y = x * x;
  return y;
}

__attribute__((noinline)) int work(int core) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += square(core + i);
  results[core] = sum;
  return sum;
}

__attribute__((noinline)) void spin(void) {
  while (!go) turns = turns + 1;
}

__attribute__((noinline)) void fault(int* where) { *where = 1; }

int gpusim_main(void) {
  const int core = (int)gpusim_core_id(), cores = (int)gpusim_core_count();
  const char what = gpusim_argc() > 1 ? gpusim_argv()[1][0] : 'r';
  work(core);
  gpusim_barrier();
  if (what == 's') spin();
  if (what == 'f' && core == cores - 1) fault((int*)16);
  if (what == 'l' && core != 0) return 0;
  gpusim_barrier();
  if (core != 0) return 0;
  for (int i = 0; i < cores; ++i) total += results[i];
  return total & 127;
}
