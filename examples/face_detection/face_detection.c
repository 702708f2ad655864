// Finds faces with a cascade of Haar features (Viola and Jones) at all positions and scales.
//
// The picture is resampled to every scale and added up to integral images, a row per core, then a
// column per core. Every window position is an item of work. Few windows pass many stages of the
// cascade, so after some stages the list of windows is compacted: cores in lockstep keep working on
// windows that need it. Windows that pass become faces in group.h. Results are those of OpenCV's
// CPU detector with the same parameters.
//
// The picture with the faces framed goes to standard output as PGM, the faces and the result line
// to standard error; with the argument "windows" each window that passed, too.
#include "compact.h"
#include "example.h"
#include "group.h"
#include "pyramid.h"

// With windows at every second position below scale 2 and at every position from there on, all
// scales from 1 on have less than 3 windows per pixel.
enum { kMaxWindows = 3 * kPictureWidth * kPictureHeight };

// Stages before each compaction of the list of windows. Later stages are longer, but few windows see them.
static const uint8_t kRounds[] = {1, 2, 3, 4, 6, 9, 13, kStages};

enum { kFlat = 0, kRejected = 1, kPassed = 2 };  // what the first stage found
static uint8_t first_stage[kMaxWindows];
static float norm[kMaxWindows];
static uint8_t keep[kMaxWindows];
static uint32_t list[2][kMaxWindows];
static uint32_t block_space[kMaxWindows / kBlock + 1];
static uint32_t group_space[kMaxWindows / kBlock / kBlocksPerGroup + 1];
static compact_space_t space = {0, block_space, group_space};
static uint8_t framed[kPictureWidth * kPictureHeight];
static uint32_t faces;
static example_result_t result;

typedef struct {
  const scale_t* scale;
  uint32_t x, y;
  size_t at;  // in the integral images
} window_t;

static window_t window_number(uint32_t number) {
  const scale_t* s = pyramid.scale;
  while (number >= s[1].first_window) ++s;
  const uint32_t position = number - s->first_window;
  window_t w = {
      .scale = s, .x = position % s->across * s->step, .y = position / s->across * s->step};
  w.at = (size_t)(s->first_row + w.y) * ROW + w.x;
  return w;
}

static inline int32_t rectangle_sum(const uint32_t* sums, const int32_t corners[4]) {
  return (int32_t)(sums[corners[0]] - sums[corners[1]] - sums[corners[2]] + sums[corners[3]]);
}

// 1 / (area x standard deviation) of the window without its outermost pixels; 0 if there is little
// to see: a standard deviation of 10 or less.
static float window_norm(size_t at) {
  static const int32_t kInner[4] = RECTANGLE(1, 1, kWindowWidth - 2, kWindowHeight - 2);
  const double area = (kWindowWidth - 2) * (kWindowHeight - 2);
  const double sum = (double)rectangle_sum(integral + at, kInner);
  const double square_sum = (double)(uint32_t)rectangle_sum(squares + at, kInner);
  const double scaled_variance = area * square_sum - sum * sum;
  if (!(scaled_variance > 0)) return 0;
  const float inverse = (float)(1.0 / __builtin_sqrt(scaled_variance));
  return area * (double)inverse < 0.1 ? inverse : 0;
}

static inline float feature(const stump_t* stump, const uint32_t* sums) {
  float value = stump->weight[0] * (float)rectangle_sum(sums, stump->corners[0]) +
                stump->weight[1] * (float)rectangle_sum(sums, stump->corners[1]);
  if (stump->weight[2] != 0) {
    value += stump->weight[2] * (float)rectangle_sum(sums, stump->corners[2]);
  }
  return value;
}

static uint32_t passes_stage(uint32_t stage, const uint32_t* sums, float inverse) {
  const stump_t* const end = kStumps + kFirstStump[stage + 1];
  double total = 0;
  for (const stump_t* stump = kStumps + kFirstStump[stage]; stump < end; ++stump) {
    const float value = feature(stump, sums) * inverse;
    total += (double)(value < stump->threshold ? stump->below : stump->above);
  }
  return total >= (double)kStageThreshold[stage];
}

static void run_first_stage(uint32_t id, uint32_t count) {
  for (uint32_t i = id; i < pyramid.windows; i += count) {
    const window_t w = window_number(i);
    const float inverse = window_norm(w.at);
    norm[i] = inverse;
    first_stage[i] = (uint8_t)(inverse == 0                                ? kFlat
                               : passes_stage(0, integral + w.at, inverse) ? kPassed
                                                                           : kRejected);
  }
}

// OpenCV goes along each row of windows and skips the one after a window that the first stage
// rejects. So of a run of rejected windows it looks at every second one, and at the window after
// the run only if the run's length is even.
static void skip_as_opencv_does(uint32_t id, uint32_t count) {
  for (uint32_t i = id; i < pyramid.windows; i += count) {
    uint32_t kept = 0;
    if (first_stage[i] == kPassed) {
      const scale_t* s = pyramid.scale;
      while (i >= s[1].first_window) ++s;
      const uint32_t row_start = i - (i - s->first_window) % s->across;
      uint32_t first = i;
      while (first > row_start && first_stage[first - 1] == kRejected) --first;
      kept = (i - first) % 2 == 0;
    }
    keep[i] = (uint8_t)kept;
  }
}

static void run_stages(uint32_t id, uint32_t count, const uint32_t* windows, uint32_t number,
                       uint32_t first, uint32_t end) {
  for (uint32_t i = id; i < number; i += count) {
    const uint32_t window = windows[i];
    const uint32_t* const sums = integral + window_number(window).at;
    const float inverse = norm[window];
    uint32_t stage = first;
    while (stage < end && passes_stage(stage, sums, inverse)) ++stage;
    keep[i] = stage == end;
  }
}

// Returns which of `list` has the windows that passed all stages: space.kept of them.
static uint32_t run_cascade(uint32_t id, uint32_t count) {
  run_first_stage(id, count);
  gpusim_barrier();
  skip_as_opencv_does(id, count);
  compact(id, count, keep, 0, pyramid.windows, list[0], &space);
  uint32_t present = 0;
  for (uint32_t round = 1; round < sizeof kRounds; ++round) {
    const uint32_t number = space.kept;
    run_stages(id, count, list[present], number, kRounds[round - 1], kRounds[round]);
    compact(id, count, keep, list[present], number, list[present ^ 1], &space);
    present ^= 1;
  }
  return present;
}

static void find_boxes(uint32_t id, uint32_t count, const uint32_t* windows, uint32_t number) {
  for (uint32_t i = id; i < number; i += count) {
    const window_t w = window_number(windows[i]);
    const float factor = w.scale->factor;
    passed_box[i] = (box_t){round_even((double)((float)w.x * factor)),
                            round_even((double)((float)w.y * factor)),
                            round_even((double)((float)kWindowWidth * factor)),
                            round_even((double)((float)kWindowHeight * factor))};
  }
}

// Independent of the integral images: one window in 4,096, pixel by pixel.
static uint32_t check_windows(uint32_t id, uint32_t count) {
  uint32_t errors = 0;
  for (uint32_t i = id; i < pyramid.windows / 4096; i += count) {
    const window_t w = window_number(i * 4096 + example_random(i) % 4096);
    uint32_t sum = 0;
    uint32_t square_sum = 0;
    for (uint32_t y = 0; y < kWindowHeight; ++y) {
      for (uint32_t x = 0; x < kWindowWidth; ++x) {
        const uint32_t pixel = resampled_pixel(row_sample[w.scale->first_row + w.y + y],
                                               column_sample[w.scale->first_column + w.x + x]);
        sum += pixel;
        square_sum += pixel * pixel;
      }
    }
    static const int32_t kWhole[4] = RECTANGLE(0, 0, kWindowWidth, kWindowHeight);
    errors += sum != (uint32_t)rectangle_sum(integral + w.at, kWhole);
    errors += square_sum != (uint32_t)rectangle_sum(squares + w.at, kWhole);
  }
  return errors;
}

static uint64_t boxes_checksum(uint32_t id, uint32_t count, const uint32_t* windows,
                               uint32_t number) {
  uint64_t checksum = 0;
  for (uint32_t i = id; i < number; i += count) checksum += example_share(i, windows[i]);
  return checksum;
}

static void copy_picture(uint32_t id, uint32_t count) {
  for (uint32_t i = id; i < sizeof framed; i += count) framed[i] = picture_pixels[i];
}

// White, with a black line inside, so that it shows on any background.
static void frame(const box_t* box) {
  for (int32_t inset = 0; inset < 2; ++inset) {
    const uint8_t grey = inset == 0 ? 255 : 0;
    const int32_t left = box->x + inset;
    const int32_t top = box->y + inset;
    const int32_t right = min_i32(box->x + box->width, kPictureWidth) - 1 - inset;
    const int32_t bottom = min_i32(box->y + box->height, kPictureHeight) - 1 - inset;
    for (int32_t x = left; x <= right; ++x) {
      framed[top * kPictureWidth + x] = grey;
      framed[bottom * kPictureWidth + x] = grey;
    }
    for (int32_t y = top; y <= bottom; ++y) {
      framed[y * kPictureWidth + left] = grey;
      framed[y * kPictureWidth + right] = grey;
    }
  }
}

static uint32_t report_box(const char* what, const box_t* box, int32_t windows) {
  const uint32_t values[] = {(uint32_t)box->x, (uint32_t)box->y, (uint32_t)box->width,
                             (uint32_t)box->height, (uint32_t)windows};
  static const char* const kNames[] = {" x=", " y=", " width=", " height=", " windows="};
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, what);
  for (uint32_t k = 0; k < 5; ++k) {
    gpusim_line_str(&line, kNames[k]);
    gpusim_line_u64(&line, values[k]);
  }
  return gpusim_line_write(&line, GPUSIM_STDERR) != 0;
}

// Core 0 calls it. From the smallest scale on.
static uint32_t report_faces(uint32_t windows) {
  uint32_t errors = 0;
  const int all = gpusim_argc() > 1 && gpusim_argv()[1][0] == 'w';
  for (uint32_t i = 0; all && i < windows; ++i) errors += report_box("window", &passed_box[i], 1);
  for (uint32_t i = 0; i < windows; ++i) {
    if (!group[i].is_face) continue;
    errors += report_box("face", &group[i].box, group[i].windows);
    frame(&group[i].box);
    ++faces;
  }
  errors += example_write_pgm(framed, kPictureWidth, kPictureHeight) != 0;
  return errors;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  if (id == 0) {
    plan_pyramid();
    if (pyramid.windows > kMaxWindows) pyramid = (pyramid_t){.errors = 1};
  }
  copy_picture(id, count);
  gpusim_barrier();
  sample_pyramid(id, count);
  gpusim_barrier();
  add_up_rows(id, count);
  gpusim_barrier();
  add_up_columns(id, count);
  gpusim_barrier();

  const uint32_t* const passed = list[run_cascade(id, count)];
  const uint32_t number = min_u32(space.kept, kMaxPassed);
  find_boxes(id, count, passed, number);
  gpusim_barrier();
  const uint32_t* const labels = label[label_groups(id, count, number)];
  average_groups(id, count, number, labels);
  gpusim_barrier();
  choose_faces(id, count, number);

  uint32_t errors = check_windows(id, count);
  const uint64_t checksum = boxes_checksum(id, count, passed, number);
  gpusim_barrier();
  if (id == 0) {
    errors += pyramid.errors;
    errors += space.kept > kMaxPassed;
    errors += report_faces(number);
    errors += faces == 0;
  }
  example_report(&result, checksum, errors);
  return example_finish(&result, "face_detection", pyramid.windows, GPUSIM_STDERR);
}
