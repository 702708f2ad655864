// The Mandelbrot set in double precision: neighbouring cores leave the loop at different times.
//
// The picture goes to standard output as PGM, the result line to standard error.
#include "example.h"

#ifndef WIDTH
#define WIDTH 256
#endif
#ifndef HEIGHT
#define HEIGHT 256
#endif
#ifndef MAX_ITERATIONS
#define MAX_ITERATIONS 255
#endif

static uint16_t iterations[HEIGHT * WIDTH];
static uint8_t picture[HEIGHT * WIDTH];
static example_result_t result;

// The view is 2.6 high and symmetric: rows r and HEIGHT - 1 - r have imaginary parts that differ in
// sign alone, to the last bit.
static double real_part(uint32_t column) {
  return ((double)(2 * (int32_t)column + 1 - WIDTH)) * (1.3 / HEIGHT) - 0.7;
}
static double imaginary_part(uint32_t row) {
  return ((double)(2 * (int32_t)row + 1 - HEIGHT)) * (1.3 / HEIGHT);
}

static uint32_t escape_time(double cx, double cy) {
  double x = 0;
  double y = 0;
  uint32_t n = 0;
  while (n < MAX_ITERATIONS) {
    const double xx = x * x;
    const double yy = y * y;
    if (xx + yy > 4.0) break;
    y = (x + x) * y + cy;
    x = (xx - yy) + cx;
    ++n;
  }
  return n;
}

// 1: surely inside (main cardioid or the disc of period 2), -1: escapes at once, 0: not known.
static int known_case(double cx, double cy) {
  const double yy = cy * cy;
  const double u = cx - 0.25;
  const double q = u * u + yy;
  const double margin = 1e-9;
  if (q * (q + u) < 0.25 * yy - margin) return 1;
  if ((cx + 1.0) * (cx + 1.0) + yy < 0.0625 - margin) return 1;
  return cx * cx + yy > 4.0 + margin ? -1 : 0;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  uint64_t checksum = 0;
  for (uint32_t e = id; e < WIDTH * HEIGHT; e += count) {
    const uint32_t n = escape_time(real_part(e % WIDTH), imaginary_part(e / WIDTH));
    iterations[e] = (uint16_t)n;
    // Inside black; outside brighter the closer to the set.
    picture[e] = (uint8_t)(n == MAX_ITERATIONS ? 0 : 255 - 1280 / (n + 5));
    checksum += example_share(e, n);
  }
  gpusim_barrier();

  // Independent checks: symmetry, and the regions known in closed form.
  uint32_t errors = 0;
  for (uint32_t e = id; e < WIDTH * HEIGHT; e += count) {
    const uint32_t row = e / WIDTH;
    const uint32_t column = e % WIDTH;
    const uint32_t n = iterations[e];
    errors += n != iterations[(HEIGHT - 1 - row) * WIDTH + column];
    const int known = known_case(real_part(column), imaginary_part(row));
    if (known > 0) errors += n != MAX_ITERATIONS;
    if (known < 0) errors += n != 1;
  }
  if (id == 0) errors += example_write_pgm(picture, WIDTH, HEIGHT) != 0;

  example_report(&result, checksum, errors);
  return example_finish(&result, "mandelbrot", WIDTH * HEIGHT, GPUSIM_STDERR);
}
