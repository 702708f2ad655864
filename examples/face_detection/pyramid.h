// The picture at all scales, as integral images: of grey values and of their squares.
//
// Sizes, rounding and interpolation are those of OpenCV 4 (exact bilinear interpolation in fixed
// point), so that integral images agree to the last bit.
#ifndef GPUSIM_FACE_DETECTION_PYRAMID_H
#define GPUSIM_FACE_DETECTION_PYRAMID_H

#include <stddef.h>

#include "cascade.h"

#ifndef SCALE_FACTOR
#define SCALE_FACTOR 1.1
#endif
#ifndef MIN_SIZE
#define MIN_SIZE 24
#endif

// With heights that shrink by a tenth, all together have less than 11 times the first one's rows.
enum { kMaxScales = 64, kMaxRows = 11 * kPictureHeight + kMaxScales };
enum { kMaxColumns = 11 * kPictureWidth + kMaxScales };

typedef struct {
  float factor;
  uint32_t width, height;  // of the picture at this scale
  uint32_t first_row;      // of its integral image, and of its resampled rows
  uint32_t first_column;
  uint32_t step;          // between windows, in x and y
  uint32_t across, down;  // windows
  uint32_t first_window;
} scale_t;

// Where a resampled row or column comes from: `from` and `from + 1`, weighted 256 - share and
// share.
typedef struct {
  uint16_t from;
  uint16_t share;
} sample_t;

typedef struct {
  uint32_t scales;
  uint32_t rows;  // of all scales together
  uint32_t columns;
  uint32_t windows;
  uint32_t errors;  // 1: does not fit
  scale_t scale[kMaxScales + 1];
} pyramid_t;
static pyramid_t pyramid;

static sample_t row_sample[kMaxRows];
static sample_t column_sample[kMaxColumns];
// Row 0 and column 0 of each scale's integral image stay zero.
static uint32_t integral[(size_t)kMaxRows * ROW];
static uint32_t
    squares[(size_t)kMaxRows * ROW];  // modulo 2^32: differences within a window are right

// To the nearest integer, halves to even; |x| < 2^31.
static inline int32_t round_even(double x) { return (int32_t)((x + 0x1.8p52) - 0x1.8p52); }

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Core 0 calls it: few steps.
static void plan_pyramid(void) {
  pyramid_t* const p = &pyramid;
  double factor = 1;
  for (;; factor *= SCALE_FACTOR) {
    if (round_even(kWindowWidth * factor) > kPictureWidth ||
        round_even(kWindowHeight * factor) > kPictureHeight) {
      break;
    }
    scale_t s = {.factor = (float)factor};
    if (round_even((double)((float)kWindowWidth * s.factor)) < MIN_SIZE ||
        round_even((double)((float)kWindowHeight * s.factor)) < MIN_SIZE) {
      continue;
    }
    s.width = (uint32_t)round_even((double)((float)kPictureWidth / s.factor));
    s.height = (uint32_t)round_even((double)((float)kPictureHeight / s.factor));
    s.step = s.factor >= 2 ? 1 : 2;
    s.first_row = p->rows;
    s.first_column = p->columns;
    s.first_window = p->windows;
    if (s.width >= kWindowWidth && s.height >= kWindowHeight) {
      s.across = (s.width - kWindowWidth) / s.step + 1;
      s.down = (s.height - kWindowHeight) / s.step + 1;
    }
    p->rows += s.height + 1;
    p->columns += s.width;
    p->windows += s.across * s.down;
    if (p->scales == kMaxScales || p->rows > kMaxRows || p->columns > kMaxColumns) {
      *p = (pyramid_t){.errors = 1};
      return;
    }
    p->scale[p->scales++] = s;
  }
  // Searches by row, column or window number stop here.
  p->scale[p->scales] =
      (scale_t){.first_row = UINT32_MAX, .first_column = UINT32_MAX, .first_window = UINT32_MAX};
}

// Bilinear interpolation between pixel centres; at the edges the outermost pixel.
static inline sample_t sample_of(uint32_t to, uint32_t from_size, uint32_t to_size) {
  const double step = 1.0 / ((double)to_size / (double)from_size);
  const double at = step * ((double)to + 0.5) - 0.5;
  if (at < 0 || from_size < 2) return (sample_t){0, 0};
  const uint32_t from = (uint32_t)at;
  if (from >= from_size - 1) return (sample_t){(uint16_t)(from_size - 2), 256};
  return (sample_t){(uint16_t)from, (uint16_t)round_even((at - (double)from) * 256)};
}

static inline uint32_t resampled_pixel(sample_t row, sample_t column) {
  const uint8_t* const p = picture_pixels + row.from * kPictureWidth + column.from;
  const uint32_t right = column.share;
  const uint32_t left = 256 - right;
  const uint32_t upper = left * p[0] + right * p[1];
  const uint32_t lower = left * p[kPictureWidth] + right * p[kPictureWidth + 1];
  return (upper * (256u - row.share) + lower * row.share + (1u << 15)) >> 16;
}

// All cores call it, a barrier follows. Items are dealt out like cards.
static void sample_pyramid(uint32_t id, uint32_t count) {
  const scale_t* s = pyramid.scale;
  for (uint32_t i = id; i < pyramid.rows; i += count) {
    while (i >= s[1].first_row) ++s;
    const uint32_t y = i - s->first_row;  // the last one of each scale is not used
    row_sample[i] = sample_of(y, kPictureHeight, s->height);
  }
  s = pyramid.scale;
  for (uint32_t i = id; i < pyramid.columns; i += count) {
    while (i >= s[1].first_column) ++s;
    column_sample[i] = sample_of(i - s->first_column, kPictureWidth, s->width);
  }
}

// A row of a scale per item: resampled and added up from the left. A barrier follows.
static void add_up_rows(uint32_t id, uint32_t count) {
  const scale_t* s = pyramid.scale;
  for (uint32_t i = id; i < pyramid.rows; i += count) {
    while (i >= s[1].first_row) ++s;
    const uint32_t y = i - s->first_row;
    if (y == s->height) continue;
    const sample_t row = row_sample[i];
    uint32_t* const sums = integral + (size_t)(i + 1) * ROW + 1;
    uint32_t* const square_sums = squares + (size_t)(i + 1) * ROW + 1;
    uint32_t sum = 0;
    uint32_t square_sum = 0;
    for (uint32_t x = 0; x < s->width; ++x) {
      const uint32_t pixel = resampled_pixel(row, column_sample[s->first_column + x]);
      sum += pixel;
      square_sum += pixel * pixel;
      sums[x] = sum;
      square_sums[x] = square_sum;
    }
  }
}

// A column of a scale per item: adjacent cores, adjacent words. A barrier follows.
static void add_up_columns(uint32_t id, uint32_t count) {
  const scale_t* s = pyramid.scale;
  for (uint32_t i = id; i < pyramid.columns; i += count) {
    while (i >= s[1].first_column) ++s;
    const size_t at = (size_t)s->first_row * ROW + 1 + (i - s->first_column);
    uint32_t* const sums = integral + at;
    uint32_t* const square_sums = squares + at;
    uint32_t sum = 0;
    uint32_t square_sum = 0;
    for (size_t y = 1; y <= s->height; ++y) {
      sum += sums[y * ROW];
      square_sum += square_sums[y * ROW];
      sums[y * ROW] = sum;
      square_sums[y * ROW] = square_sum;
    }
  }
}

#endif  // GPUSIM_FACE_DETECTION_PYRAMID_H
