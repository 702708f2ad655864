// Sobel edges of a picture, offloaded. --in FILE: PGM or PPM, 8 bits; else a picture of --size N x
// N pixels is drawn. --out FILE: the edges as PGM.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload_example.h"

typedef struct {
  uint64_t width, height;
  uint8_t pixels[];  // the picture, then its edges
} job_t;

typedef struct {
  uint64_t width, height;
  uint8_t* pixels;  // grey
} picture_t;

static picture_t input;

// The next number of a header; comments run from # to the end of the line.
static int read_number(FILE* file, unsigned* number) {
  int c = fgetc(file);
  while (c == '#' || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
    if (c == '#') {
      while (c != '\n' && c != EOF) c = fgetc(file);
    }
    c = fgetc(file);
  }
  unsigned n = 0;
  int digits = 0;
  for (; c >= '0' && c <= '9' && digits < 7; ++digits, c = fgetc(file)) {
    n = 10 * n + (unsigned)(c - '0');
  }
  *number = n;
  // One white space follows.
  return digits > 0 && n > 0 && (c == ' ' || c == '\n' || c == '\t' || c == '\r') ? 0 : -1;
}

static int read_picture(const char* path) {
  FILE* const file = fopen(path, "rbe");
  if (file == NULL) {
    perror(path);
    return -1;
  }
  char magic[2] = {0, 0};
  unsigned width = 0;
  unsigned height = 0;
  unsigned most = 0;
  int is_right = fread(magic, 1, 2, file) == 2 && magic[0] == 'P' &&
                 (magic[1] == '5' || magic[1] == '6') && read_number(file, &width) == 0 &&
                 read_number(file, &height) == 0 && read_number(file, &most) == 0 && most == 255 &&
                 width <= 32768 && height <= 32768;
  const size_t channels = magic[1] == '6' ? 3 : 1;
  const size_t size = (size_t)width * height;
  uint8_t* const bytes = is_right ? malloc(size * channels) : NULL;
  is_right = is_right && bytes != NULL && fread(bytes, channels, size, file) == size;
  fclose(file);
  if (!is_right) {
    fprintf(stderr, "%s: not a whole PGM or PPM picture of 8 bits (P5 or P6)\n", path);
    free(bytes);
    return -1;
  }
  // Luma of ITU-R BT.601, in 1/256.
  for (size_t i = 0; channels == 3 && i < size; ++i) {
    bytes[i] = (uint8_t)((77 * bytes[3 * i] + 150 * bytes[3 * i + 1] + 29 * bytes[3 * i + 2]) >> 8);
  }
  input = (picture_t){width, height, bytes};
  return 0;
}

// Rings around two centres over a slope, and a frame.
static void draw_picture(uint64_t n) {
  input = (picture_t){n, n, malloc(n * n)};
  for (uint64_t y = 0; input.pixels != NULL && y < n; ++y) {
    for (uint64_t x = 0; x < n; ++x) {
      const uint64_t dx = x > n / 3 ? x - n / 3 : n / 3 - x;
      const uint64_t dy = y > n / 2 ? y - n / 2 : n / 2 - y;
      const uint64_t ex = x > n * 3 / 4 ? x - n * 3 / 4 : n * 3 / 4 - x;
      const uint64_t rings = ((dx * dx + dy * dy) / (n + 1) + (ex * ex + y * y) / (2 * n)) & 31;
      const int is_frame = x < n / 32 || y < n / 32;
      input.pixels[y * n + x] = (uint8_t)(is_frame ? 250 : rings * 4 + x * 120 / n);
    }
  }
}

static size_t plan(example_options_t* options) {
  if (options->in != NULL) {
    if (read_picture(options->in) != 0) return 0;
    options->size = input.width * input.height;
  } else {
    if (options->size < 4 || options->size > 16384) {
      fprintf(stderr, "offload_sobel: --size: 4 to 16384\n");
      return 0;
    }
    draw_picture(options->size);
    if (input.pixels == NULL) {
      fprintf(stderr, "offload_sobel: out of memory\n");
      return 0;
    }
  }
  return sizeof(job_t) + 2 * input.width * input.height;
}

static void prepare(void* memory, const example_options_t* options) {
  (void)options;
  job_t* const job = memory;
  job->width = input.width;
  job->height = input.height;
  memcpy(job->pixels, input.pixels, input.width * input.height);
}

void sobel_kernel(void* memory, uint64_t core, uint64_t cores) {
  job_t* const job = memory;
  const uint64_t w = job->width;
  const uint64_t h = job->height;
  uint8_t* const edges = job->pixels + w * h;
  for (uint64_t e = core; e < w * h; e += cores) {
    const uint64_t row = e / w;
    const uint64_t column = e % w;
    if (row == 0 || row == h - 1 || column == 0 || column == w - 1) {
      edges[e] = 0;
      continue;
    }
    const uint8_t* const above = job->pixels + e - w;
    const uint8_t* const here = job->pixels + e;
    const uint8_t* const below = job->pixels + e + w;
    const int32_t gx = (above[1] - above[-1]) + 2 * (here[1] - here[-1]) + (below[1] - below[-1]);
    const int32_t gy =
        (below[-1] + 2 * below[0] + below[1]) - (above[-1] + 2 * above[0] + above[1]);
    const int32_t magnitude = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
    edges[e] = (uint8_t)(magnitude > 255 ? 255 : magnitude);
  }
}

static const void* results(const void* memory, size_t* size_bytes) {
  const job_t* const job = memory;
  *size_bytes = job->width * job->height;
  return job->pixels + *size_bytes;
}

static int save(const void* memory, const example_options_t* options) {
  size_t size_bytes;
  const void* const edges = results(memory, &size_bytes);
  FILE* const file = fopen(options->out, "wbe");
  int is_right = file != NULL;
  if (is_right) {
    is_right = fprintf(file, "P5\n%llu %llu\n255\n", (unsigned long long)input.width,
                       (unsigned long long)input.height) > 0 &&
               fwrite(edges, 1, size_bytes, file) == size_bytes;
    is_right &= fclose(file) == 0;
  }
  if (!is_right) perror(options->out);
  return is_right ? 0 : -1;
}

int main(int argc, char** argv) {
  static const example_t example = {.name = "sobel",
                                    .default_size = 1024,
                                    .plan = plan,
                                    .prepare = prepare,
                                    .kernel = sobel_kernel,
                                    .kernel_name = "sobel_kernel",
                                    .results = results,
                                    .save = save};
  return example_run(&example, argc, argv);
}
