#include "wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool gpusim_omp_on_gpusim;
uint32_t gpusim_omp_sleepers;

void gpusim_omp_futex_wait(uint32_t* word, uint32_t value) {
  for (int i = 0; i < 200; ++i) {
    if (LOAD(word) != value) return;
    pause_briefly();
  }
  FETCH_ADD(&gpusim_omp_sleepers, 1);
  while (LOAD(word) == value)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, (void*)0, (void*)0, 0);
  FETCH_ADD(&gpusim_omp_sleepers, (uint32_t)-1);
}

void gpusim_omp_futex_wake(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, (void*)0, (void*)0, 0);
}
