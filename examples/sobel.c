// Sobel edge filter over the picture.
//
// Core c computes pixels c, c + P, ...: adjacent cores load adjacent bytes. The filtered picture
// goes to standard output as PGM, the result line to standard error.
#include "example.h"
#include "image/picture.h"

#ifndef REPEAT
#define REPEAT 1  // for benchmarks
#endif
enum { W = PICTURE_WIDTH, H = PICTURE_HEIGHT };

static uint8_t edges[W * H];
static uint64_t sum_gx;  // of the signed gradients over all inner pixels
static uint64_t sum_gy;
static uint64_t expected_gx;
static uint64_t expected_gy;
static example_result_t result;

static int32_t at(uint32_t row, uint32_t column) { return picture_pixels[row * W + column]; }

// The sum of a gradient along a row (or column) telescopes: only the two pixels at each end remain.
static int32_t row_sum_of_gx(uint32_t y) {
  int32_t sum = 0;
  for (uint32_t dy = 0; dy < 3; ++dy) {
    const int32_t weight = dy == 1 ? 2 : 1;
    const uint32_t row = y + dy - 1;
    sum += weight * (at(row, W - 1) + at(row, W - 2) - at(row, 1) - at(row, 0));
  }
  return sum;
}
static int32_t column_sum_of_gy(uint32_t x) {
  int32_t sum = 0;
  for (uint32_t dx = 0; dx < 3; ++dx) {
    const int32_t weight = dx == 1 ? 2 : 1;
    const uint32_t column = x + dx - 1;
    sum += weight * (at(H - 1, column) + at(H - 2, column) - at(1, column) - at(0, column));
  }
  return sum;
}

// One pixel by the book: two 3x3 convolutions.
static uint32_t edge_by_convolution(uint32_t row, uint32_t column) {
  static const int8_t kernel[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
  int32_t gx = 0;
  int32_t gy = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t j = 0; j < 3; ++j) {
      gx += kernel[i][j] * at(row + i - 1, column + j - 1);
      gy += kernel[j][i] * at(row + i - 1, column + j - 1);
    }
  }
  const int32_t magnitude = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
  return magnitude > 255 ? 255 : (uint32_t)magnitude;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  uint64_t total_gx = 0;
  uint64_t total_gy = 0;
  for (uint32_t pass = 0; pass < REPEAT; ++pass) {
    total_gx = 0;
    total_gy = 0;
    for (uint32_t e = id; e < W * H; e += count) {
      const uint32_t row = e / W;
      const uint32_t column = e % W;
      if (row == 0 || row == H - 1 || column == 0 || column == W - 1) {
        edges[e] = 0;
        continue;
      }
      const uint8_t* const p = picture_pixels + e;
      const int32_t gx = (p[1 - W] - p[-1 - W]) + 2 * (p[1] - p[-1]) + (p[1 + W] - p[-1 + W]);
      const int32_t gy = (p[W - 1] + 2 * p[W] + p[W + 1]) - (p[-W - 1] + 2 * p[-W] + p[-W + 1]);
      const int32_t magnitude = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
      edges[e] = (uint8_t)(magnitude > 255 ? 255 : magnitude);
      total_gx += (uint64_t)(int64_t)gx;
      total_gy += (uint64_t)(int64_t)gy;
    }
    gpusim_barrier();
  }
  gpusim_fetch_add_u64(&sum_gx, total_gx);
  gpusim_fetch_add_u64(&sum_gy, total_gy);

  // Independent checks: the border, one pixel in 16 by the book, and the sums of all gradients.
  uint64_t checksum = 0;
  uint32_t errors = 0;
  for (uint32_t e = id; e < W * H / 4; e += count) {  // four pixels at a time
    uint32_t four;
    __builtin_memcpy(&four, edges + 4 * e, sizeof four);
    checksum += example_share(e, four);
  }
  for (uint32_t e = id; e < W * H / 16; e += count) {
    const uint32_t row = e / (W / 16);
    const uint32_t column = 16 * (e % (W / 16)) + example_random(row) % 16;
    const int border = row == 0 || row == H - 1 || column == 0 || column == W - 1;
    const uint32_t expected = border ? 0 : edge_by_convolution(row, column);
    errors += expected != edges[row * W + column];
  }
  for (uint32_t y = id + 1; y < H - 1; y += count) {
    gpusim_fetch_add_u64(&expected_gx, (uint64_t)(int64_t)row_sum_of_gx(y));
  }
  for (uint32_t x = id + 1; x < W - 1; x += count) {
    gpusim_fetch_add_u64(&expected_gy, (uint64_t)(int64_t)column_sum_of_gy(x));
  }
  gpusim_barrier();
  if (id == 0) {
    errors += sum_gx != expected_gx;
    errors += sum_gy != expected_gy;
    errors += example_write_pgm(edges, W, H) != 0;
  }

  example_report(&result, checksum, errors);
  return example_finish(&result, "sobel", W * H, GPUSIM_STDERR);
}
