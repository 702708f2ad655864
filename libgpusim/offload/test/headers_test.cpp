// SPDX-License-Identifier: MIT
// The public header alone, as C++, and the internal ones that C++ sees.
#include "libgpusim/offload/gpusim.h"

#include "libgpusim/offload/port.h"

static_assert(GPUSIM_CLASS_COUNT <= GPUSIM_MOST_CLASSES);
static_assert(GPUSIM_INTERNAL == -12);

int gpusim_headers_test_launch(gpusim_queue* queue, gpusim_kernel* kernel, gpusim_buffer* buffer);
int gpusim_headers_test_launch(gpusim_queue* queue, gpusim_kernel* kernel, gpusim_buffer* buffer) {
  const struct {
    int a;
    double b;
  } structure{1, 2};
  gpusim_event* event = nullptr;
  return gpusim::launch(queue, kernel, 7) +
         gpusim::launch_2d(queue, kernel, 7, 2, GPUSIM_X, GPUSIM_AFFINE(1, 2), true, 'c', 1.0f,
                           2.0) +
         gpusim::launch_event(queue, kernel, &event, 7, buffer, GPUSIM_AT(buffer, 8),
                              GPUSIM_STRUCTURE(structure), &event);
}
