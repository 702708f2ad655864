// Draws the project's test picture: a house by a lake, hills, trees, a low sun, and lettering.
//
// Usage: draw_picture PIXELS.raw [PICTURE.pgm]
//
// A picture of our own, with what image filters are judged by: smooth gradients (sky, sun), fine
// texture (grass, leaves, water), straight edges of many directions (house, fence) and curves
// (letters). Only additions, multiplications, divisions and square roots: the same bytes
// everywhere.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"

// ---- Small tools -------------------------------------------------------------------------------

static double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double mix(double a, double b, double t) { return a + (b - a) * t; }
static double smooth(double a, double b, double x) {
  const double t = clamp01((x - a) / (b - a));
  return t * t * (3 - 2 * t);
}
static double min2(double a, double b) { return a < b ? a : b; }
static double absolute(double x) { return x < 0 ? -x : x; }
static double length2(double x, double y) { return sqrt(x * x + y * y); }
static int floor_int(double x) {
  const int i = (int)x;
  return x < i ? i - 1 : i;
}

// A number in [0, 1) for a grid point.
static double grid_noise(int x, int y, int seed) {
  uint32_t h = (uint32_t)x * 0x8DA6B343u + (uint32_t)y * 0xD8163841u + (uint32_t)seed * 0xCB1AB31Fu;
  h = (h ^ (h >> 15)) * 0x9E3779B1u;
  h = (h ^ (h >> 13)) * 0xB5297A4Du;
  return (double)((h ^ (h >> 16)) >> 8) / 16777216.0;
}

static double value_noise(double x, double y, int seed) {
  const int i = floor_int(x), j = floor_int(y);
  const double u = smooth(0, 1, x - i), v = smooth(0, 1, y - j);
  const double top = mix(grid_noise(i, j, seed), grid_noise(i + 1, j, seed), u);
  const double bottom = mix(grid_noise(i, j + 1, seed), grid_noise(i + 1, j + 1, seed), u);
  return mix(top, bottom, v);
}

// Several octaves of it, in [0, 1).
static double fractal_noise(double x, double y, int octaves, int seed) {
  double sum = 0, weight = 0.5, total = 0;
  for (int i = 0; i < octaves; ++i) {
    sum += weight * value_noise(x, y, seed + i);
    total += weight;
    weight *= 0.5;
    x *= 2.03;
    y *= 2.03;
  }
  return sum / total;
}

// ---- The scene; x to the right, y down, both 0 to 1 --------------------------------------------

static const double kSunX = 0.715, kSunY = 0.235, kSunRadius = 0.052;
static const double kShore = 0.600;  // where land and water begin

static double sky(double x, double y) {
  double grey = mix(0.36, 0.80, smooth(0.0, 0.62, y));
  const double d = length2(x - kSunX, y - kSunY);
  grey += 0.30 / (1 + 60 * d * d);
  const double cloud = fractal_noise(2.2 * x + 3.1, 7.5 * y, 6, 11);
  const double cover = smooth(0.52, 0.78, cloud) * smooth(0.55, 0.15, y);
  grey = mix(grey, 0.93 - 0.25 * smooth(0.6, 0.9, cloud), 0.75 * cover);
  return mix(0.99, grey, smooth(kSunRadius - 0.002, kSunRadius + 0.002, d));
}

// A range's crest: y of its outline.
static double crest(double x, double base, double height, double scale, int seed) {
  return base - height * fractal_noise(scale * x + 5.0 * seed, 0.5, 6, seed);
}

static double mountains(double x, double y, double grey) {
  const double far_crest = crest(x, 0.60, 0.36, 2.4, 21);
  if (y > far_crest) {
    // Snow above, rock below, lit from the sun's side.
    const double slope = crest(x + 0.004, 0.60, 0.36, 2.4, 21) - far_crest;
    const double rock = fractal_noise(26 * x, 26 * y, 4, 23);
    const double snow = smooth(0.10, 0.02, y - far_crest + 0.09 * (rock - 0.5));
    grey = mix(0.50, 0.90, snow) + 14 * slope * (0.3 + 0.7 * rock);
    grey = mix(clamp01(grey), 0.74, smooth(0.42, 0.62, y));
  }
  const double near_crest = crest(x, 0.635, 0.19, 3.7, 31);
  if (y > near_crest) {
    const double wood = fractal_noise(90 * x, 60 * y, 3, 33);
    grey = mix(0.36, 0.27, smooth(0, 0.12, y - near_crest)) + 0.16 * (wood - 0.5);
  }
  return grey;
}

static double background(double x, double y) { return mountains(x, y, sky(x, y)); }

static double lake(double x, double y) {
  const double depth = (y - kShore) / (1 - kShore);
  const double wave = fractal_noise(16 * x, 150 * y / (0.35 + depth), 3, 41) - 0.5;
  const double mirrored = background(clamp01(x + 0.035 * wave), kShore - 0.85 * (y - kShore));
  double grey = 0.82 * mirrored + 0.10 * wave;
  const double glitter = smooth(0.07, 0.0, absolute(x - kSunX + 0.04 * wave));
  grey += 0.55 * glitter * smooth(0.56, 0.72, wave + 0.5);
  return clamp01(grey);
}

static double meadow_edge(double x) {
  return 0.735 - 0.115 * smooth(0.62, 0.18, x) + 0.03 * (value_noise(5 * x, 0, 51) - 0.5) +
         0.09 * smooth(0.75, 1.0, x);
}

static double meadow(double x, double y) {
  const double edge = meadow_edge(x);
  const double depth = (y - edge) / (1 - edge);
  const double blades =
      value_noise(420 * x, 60 * y, 61) * 0.6 + value_noise(160 * x, 30 * y, 62) * 0.4;
  double grey = mix(0.50, 0.26, depth) + 0.22 * (blades - 0.5);
  grey += 0.10 * (fractal_noise(5 * x, 9 * y, 4, 63) - 0.5);
  // A path from the door, widening towards the viewer.
  const double t = clamp01((y - 0.765) / 0.235);
  const double middle = 0.285 + 0.16 * t * t;
  const double half_width = 0.012 + 0.055 * t;
  const double path = smooth(half_width, 0.8 * half_width, absolute(x - middle));
  const double gravel = 0.72 + 0.2 * (value_noise(260 * x, 200 * y, 64) - 0.5);
  return y > 0.765 ? mix(grey, gravel, path) : grey;
}

static int inside(double x, double y, double left, double top, double right, double bottom) {
  return x >= left && x < right && y >= top && y < bottom;
}

static double window(double x, double y, double left, double top, double width, double height) {
  const double u = (x - left) / width, v = (y - top) / height;
  if (u < 0.09 || u > 0.91 || v < 0.07 || v > 0.93) return 0.93;           // frame
  if (absolute(u - 0.5) < 0.035 || absolute(v - 0.5) < 0.03) return 0.93;  // bars
  return 0.16 + 0.34 * smooth(0.75, 0.25, absolute(u - v + 0.15));         // reflection
}

// Returns a negative number where the house is not.
static double house(double x, double y) {
  const double left = 0.150, right = 0.400, eaves = 0.585, ground = 0.765, ridge = 0.455;
  // Chimney and smoke.
  if (inside(x, y, 0.335, 0.440, 0.365, 0.530) && y < 0.53) {
    const int course = floor_int(y * 130);
    const double u = x * 90 + 0.5 * (course & 1);
    const int mortar = y * 130 - course < 0.18 || u - floor_int(u) < 0.12;
    return mortar ? 0.62 : 0.38 + 0.1 * grid_noise(floor_int(u), course, 71);
  }
  // Roof: a trapezium with rows of tiles.
  const double t = (y - ridge) / (eaves - ridge);
  if (t >= 0 && t <= 1.06) {
    const double inset = 0.055 * (1 - t);
    if (x > left - 0.022 + inset && x < right + 0.022 - inset) {
      const int row = floor_int(y * 125);
      const double u = x * 75 + 0.5 * (row & 1);
      const double v = y * 125 - row;
      const double shade = 0.24 + 0.12 * grid_noise(floor_int(u), row, 72);
      if (t > 1) return 0.90;  // gutter
      return shade * (u - floor_int(u) < 0.1 ? 0.6 : 1) * mix(1.25, 0.7, v);
    }
  }
  if (!inside(x, y, left, eaves, right, ground)) return -1;
  if (inside(x, y, 0.172, 0.630, 0.232, 0.705)) return window(x, y, 0.172, 0.630, 0.060, 0.075);
  if (inside(x, y, 0.322, 0.630, 0.382, 0.705)) return window(x, y, 0.322, 0.630, 0.060, 0.075);
  if (inside(x, y, 0.252, 0.640, 0.304, ground)) {  // door
    if (inside(x, y, 0.258, 0.647, 0.298, ground)) {
      if (length2(x - 0.292, y - 0.710) < 0.0035) return 0.95;
      const double u = (x - 0.258) * 150;
      return 0.30 - (u - floor_int(u) < 0.15 ? 0.12 : 0);
    }
    return 0.92;
  }
  // Boards, in the roof's shadow on top.
  const double v = y * 95;
  const double board =
      v - floor_int(v) < 0.12 ? 0.60 : 0.80 + 0.04 * grid_noise(0, floor_int(v), 73);
  return board * mix(0.62, 1, smooth(eaves, eaves + 0.03, y));
}

static double smoke(double x, double y) {
  const double rise = 0.440 - y;
  if (rise < 0 || rise > 0.26) return 0;
  const double middle =
      0.350 + 0.55 * rise * rise + 0.05 * (value_noise(14 * y, 2, 75) - 0.5) * rise * 8;
  const double width = 0.010 + 0.12 * rise;
  const double density = smooth(width, 0, absolute(x - middle)) * (1 - rise / 0.26);
  return 0.75 * density * (0.4 + 0.6 * fractal_noise(40 * x, 40 * y, 3, 76));
}

// A broad-leaved tree: returns its grey, or a negative number outside.
static double tree(double x, double y, double cx, double ground, double size, int seed) {
  const double u = (x - cx) / size, v = (ground - y) / size;  // v upwards
  if (u < -0.6 || u > 0.6 || v < -0.02 || v > 1.25) return -1;
  const double rag = 0.16 * (fractal_noise(9 * u + seed, 9 * v, 4, seed) - 0.5);
  double crown = 1;  // distance to the nearest of five round tufts, negative inside
  static const double tuft[5][3] = {{0, 0.86, 0.29},
                                    {-0.24, 0.66, 0.25},
                                    {0.25, 0.68, 0.25},
                                    {-0.08, 0.55, 0.24},
                                    {0.13, 0.50, 0.20}};
  for (int i = 0; i < 5; ++i) {
    crown = min2(crown, length2(u - tuft[i][0], v - tuft[i][1]) - tuft[i][2]);
  }
  if (crown + rag < 0) {
    const double leaves = fractal_noise(34 * u + seed, 34 * v, 3, seed + 7);
    const double light = 0.20 + 0.26 * smooth(-0.35, 0.45, u * 0.7 + (v - 0.65));
    return clamp01(light + 0.34 * (leaves - 0.45));
  }
  const double trunk = 0.030 + 0.025 * smooth(0.25, 0, v);
  if (v < 0.5 && absolute(u) < trunk) {
    return 0.17 + 0.16 * (u / trunk + 1) * 0.5 + 0.08 * (value_noise(60 * u, 12 * v, seed) - 0.5);
  }
  return -1;
}

static double conifer(double x, double y, double cx, double ground, double size, int seed) {
  const double u = absolute(x - cx) / size, v = (ground - y) / size;
  if (v < 0 || v > 1) return -1;
  if (v < 0.12) return u < 0.03 ? 0.16 : -1;
  const double tier = (v - 0.12) * 6.5;
  const double within = tier - floor_int(tier);
  const double width = 0.27 * (1 - v) * (1.15 - 0.5 * within) + 0.02;
  const double rag = 0.05 * (value_noise(40 * (x - cx) / size, 30 * v, seed) - 0.5);
  if (u > width + rag) return -1;
  const double side = x > cx ? 0.07 : 0;
  return 0.13 + side + 0.12 * within + 0.12 * (value_noise(300 * x, 300 * y, seed) - 0.5);
}

static double fence(double x, double y) {
  if (x < 0.50) return -1;
  const double ground = 0.865 + 0.05 * (x - 0.5);
  const double up = ground - y;
  const double p = (x - 0.5) * 24;
  const double u = p - floor_int(p);
  if (u > 0.36 && u < 0.64 && up > -0.01) {
    const double top = 0.082 - 0.055 * absolute(u - 0.5);
    if (up < top) return u < 0.42 ? 0.70 : 0.95;
  }
  if ((up > 0.018 && up < 0.030) || (up > 0.050 && up < 0.062))
    return up - floor_int(up) < 0.024 ? 0.78 : 0.88;
  return -1;
}

// ---- Lettering: each letter a union of strokes; distance to the pen's path ---------------------

static double segment(double x, double y, double x0, double y0, double x1, double y1) {
  const double dx = x1 - x0, dy = y1 - y0;
  const double t = clamp01(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy));
  return length2(x - x0 - t * dx, y - y0 - t * dy);
}

enum { kUpper = 1, kLower = 2, kBoth = 3 };
// A circle, or its half above or below the centre.
static double arc(double x, double y, double cx, double cy, double r, int part) {
  const int above = y < cy;
  if ((above && (part & kUpper) != 0) || (!above && (part & kLower) != 0)) {
    return absolute(length2(x - cx, y - cy) - r);
  }
  return min2(length2(x - cx - r, y - cy), length2(x - cx + r, y - cy));
}

// Units: x height 1, baseline y = 1, letters about 1 wide.
static double letter(char c, double x, double y) {
  switch (c) {
    case 'g':
      return min2(arc(x, y, 0.5, 0.5, 0.5, kBoth),
                  min2(segment(x, y, 1, 0, 1, 1.2), arc(x, y, 0.5, 1.2, 0.5, kLower)));
    case 'p':
      return min2(arc(x, y, 0.5, 0.5, 0.5, kBoth), segment(x, y, 0, 0, 0, 1.65));
    case 'u':
      return min2(arc(x, y, 0.5, 0.5, 0.5, kLower),
                  min2(segment(x, y, 0, 0, 0, 0.5), segment(x, y, 1, 0, 1, 1)));
    case 's': {
      // Two three-quarter turns: cut the quarter where each is open.
      const double upper = x > 0.42 && y > 0.25 ? 9 : absolute(length2(x - 0.42, y - 0.25) - 0.25);
      const double lower = x < 0.42 && y < 0.75 ? 9 : absolute(length2(x - 0.42, y - 0.75) - 0.25);
      return min2(min2(upper, lower),
                  min2(segment(x, y, 0.42, 0, 0.66, 0), segment(x, y, 0.14, 1, 0.42, 1)));
    }
    case 'i':
      return min2(segment(x, y, 0.2, 0, 0.2, 1), length2(x - 0.2, y + 0.42) - 0.04);
    default:  // m
      return min2(min2(arc(x, y, 0.36, 0.36, 0.36, kUpper), arc(x, y, 1.08, 0.36, 0.36, kUpper)),
                  min2(segment(x, y, 0, 0, 0, 1), min2(segment(x, y, 0.72, 0.36, 0.72, 1),
                                                       segment(x, y, 1.44, 0.36, 1.44, 1))));
  }
}

static double lettering(double x, double y, double grey) {
  static const char word[] = "gpusim";
  static const double start[] = {0, 1.65, 3.25, 4.85, 6.15, 7.15};
  const double size = 0.052, left = 0.070, top = 0.100;
  const double u = (x - left) / size, v = (y - top) / size;
  double d = 9, shadow = 9;
  for (int i = 0; word[i] != 0; ++i) {
    d = min2(d, letter(word[i], u - start[i], v));
    shadow = min2(shadow, letter(word[i], u - start[i] - 0.12, v - 0.12));
  }
  grey = mix(grey, 0.15, 0.55 * smooth(0.30, 0.12, shadow));
  return mix(grey, 0.98, smooth(0.155, 0.125, d));
}

// ---- All together ------------------------------------------------------------------------------

static double scene(double x, double y) {
  double grey = y < kShore ? background(x, y) : lake(x, y);
  const double edge = meadow_edge(x);
  // Conifers on the far meadow, before the meadow so that it hides their feet.
  for (int i = 0; i < 9; ++i) {
    const double cx = 0.015 + 0.052 * i + 0.02 * grid_noise(i, 0, 81);
    const double g =
        conifer(x, y, cx, meadow_edge(cx) + 0.012, 0.13 + 0.10 * grid_noise(i, 1, 81), 82 + i);
    if (g >= 0) grey = g;
  }
  if (y > edge) grey = meadow(x, y);
  grey = mix(grey, 0.90, smoke(x, y));
  const double h = house(x, y);
  if (h >= 0) grey = h;
  const double t1 = tree(x, y, 0.050, 0.835, 0.27, 91);
  if (t1 >= 0) grey = t1;
  const double t2 = tree(x, y, 0.475, 0.770, 0.19, 95);
  if (t2 >= 0) grey = t2;
  const double f = fence(x, y);
  if (f >= 0) grey = f;
  const double t3 = tree(x, y, 0.905, 0.960, 0.43, 99);
  if (t3 >= 0) grey = t3;
  return clamp01(lettering(x, y, grey));
}

static int write_file(const char* path, const char* header, const uint8_t* pixels, size_t n) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) {
    fprintf(stderr, "draw_picture: cannot create %s\n", path);
    return 1;
  }
  int failed = fputs(header, file) < 0 || fwrite(pixels, 1, n, file) != n;
  failed = fclose(file) != 0 || failed;
  if (failed) {
    fprintf(stderr, "draw_picture: cannot write %s\n", path);
    remove(path);
  }
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: draw_picture PIXELS.raw [PICTURE.pgm]\n");
    return 2;
  }
  enum { kSamples = 2 };  // along each axis, against jagged edges
  const size_t n = (size_t)PICTURE_WIDTH * PICTURE_HEIGHT;
  uint8_t* pixels = malloc(n);
  if (pixels == NULL) return 2;
  for (int row = 0; row < PICTURE_HEIGHT; ++row) {
    for (int column = 0; column < PICTURE_WIDTH; ++column) {
      double sum = 0;
      for (int s = 0; s < kSamples * kSamples; ++s) {
        const double x = (column + (s % kSamples + 0.5) / kSamples) / PICTURE_WIDTH;
        const double y = (row + (s / kSamples + 0.5) / kSamples) / PICTURE_HEIGHT;
        sum += scene(x, y);
      }
      pixels[(size_t)row * PICTURE_WIDTH + (size_t)column] =
          (uint8_t)(sum / (kSamples * kSamples) * 255 + 0.5);
    }
  }
  int failed = write_file(argv[1], "", pixels, n);
  if (argc > 2 && !failed) {
    char header[64];
    snprintf(header, sizeof header, "P5 %d %d 255\n", PICTURE_WIDTH, PICTURE_HEIGHT);
    failed = write_file(argv[2], header, pixels, n);
  }
  free(pixels);
  return failed;
}
