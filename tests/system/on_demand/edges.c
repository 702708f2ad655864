// A filter over a picture, whose first row is all border. In the second row one core of a group is
// at the border, while the others come to code where none of them has been before.
#include "gpusim_sync.h"

enum { kWidth = 256, kHeight = 64 };

static uint8_t from[kWidth * kHeight], to[kWidth * kHeight];

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id(), cores = gpusim_core_count();
  for (uint32_t e = id; e < kWidth * kHeight; e += cores) from[e] = (uint8_t)(e * e >> 7);
  gpusim_barrier();
  for (uint32_t e = id; e < kWidth * kHeight; e += cores) {
    const uint32_t row = e / kWidth, column = e % kWidth;
    if (row == 0 || row == kHeight - 1 || column == 0 || column == kWidth - 1) {
      to[e] = 0;
      continue;
    }
    const uint8_t* p = from + e;
    const int32_t x =
        (p[1 - kWidth] - p[-1 - kWidth]) + 2 * (p[1] - p[-1]) + (p[1 + kWidth] - p[-1 + kWidth]);
    const int32_t magnitude = x < 0 ? -x : x;
    to[e] = (uint8_t)(magnitude > 255 ? 255 : magnitude);
  }
  gpusim_barrier();
  return to[kWidth * 2 + 3] & 1;
}
