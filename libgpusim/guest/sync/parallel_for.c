#include "gpusim_sync.h"

void gpusim_parallel_for(int64_t begin, int64_t end, enum gpusim_schedule schedule, uint64_t chunk,
                         void (*body)(int64_t i, void* argument), void* argument) {
  // One is enough: the barrier at the end comes between two loops.
  static gpusim_loop_t loop;
  gpusim_range_t r;
  switch (schedule) {
    case GPUSIM_BLOCKS:
      r = gpusim_range_blocks(begin, end);
      break;
    case GPUSIM_DYNAMIC:
      r = gpusim_range_dynamic(&loop, begin, end, chunk);
      break;
    case GPUSIM_GUIDED:
      r = gpusim_range_guided(&loop, begin, end, chunk);
      break;
    default:
      r = gpusim_range_static(begin, end, chunk);
      break;
  }
  while (gpusim_next(&r)) body(r.i, argument);
  gpusim_barrier();
}
