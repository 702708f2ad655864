// The library's headers in C++: everything in them compiles, and initialisers work.
#include "gpusim_sync.h"

namespace {

gpusim_group_t group = GPUSIM_GROUP_INIT(3);
gpusim_semaphore_t semaphore = GPUSIM_SEMAPHORE_INIT(2);
gpusim_loop_t loop = GPUSIM_LOOP_INIT(3);
gpusim_mutex_t mutex;

}  // namespace

int gpusim_main() {
  gpusim_mutex_lock(&mutex);
  gpusim_mutex_unlock(&mutex);
  gpusim_semaphore_wait(&semaphore);
  int64_t sum = 0;
  for (gpusim_range_t r = gpusim_range_guided(&loop, 0, 9, 1); gpusim_next(&r);) sum += r.i;
  for (gpusim_range_t r = gpusim_range_blocks(0, 9); gpusim_next_chunk(&r);) sum += r.last;
  gpusim_parallel_for(
      0, 9, GPUSIM_STATIC, 1, [](int64_t i, void* total) { *static_cast<int64_t*>(total) += i; },
      &sum);
  return gpusim_group_sum_i64(&group, sum) > 0 && gpusim_max_f64(1.0) > 0 ? 0 : 1;
}
