// From windows that passed to faces: windows that lie close together become one, their mean.
//
// The rules are those of OpenCV's groupRectangles: similar windows (directly or through others)
// make a group; groups of MIN_NEIGHBORS windows or fewer are dropped, and so are small groups
// within large ones.
#ifndef GPUSIM_FACE_DETECTION_GROUP_H
#define GPUSIM_FACE_DETECTION_GROUP_H

#include "pyramid.h"
#ifndef GPUSIM_FACE_DETECTION_HOST  // whoever says so has its own gpusim_barrier()
#include "gpusim_guest.h"
#endif

#ifndef MIN_NEIGHBORS
#define MIN_NEIGHBORS 3
#endif
enum { kMaxPassed = 1 << 14 };

typedef struct {
  int32_t x, y, width, height;
} box_t;

typedef struct {
  box_t box;
  int32_t windows;
  uint32_t is_face;
} group_t;

static box_t passed_box[kMaxPassed];
static uint32_t label[2]
                     [kMaxPassed];  // the lowest number of a window known to be in the same group
static group_t group[kMaxPassed];   // at the number of its lowest window
static uint32_t label_changes[2];

static inline int32_t absolute(int32_t x) { return x < 0 ? -x : x; }
static inline int32_t min_i32(int32_t a, int32_t b) { return a < b ? a : b; }

// All four edges within a fifth of the smaller one's mean side.
static inline int similar(const box_t* a, const box_t* b) {
  const double sides = (double)(min_i32(a->width, b->width) + min_i32(a->height, b->height));
  const double most = 0.2 * sides * 0.5;
  const int32_t right = a->x + a->width - b->x - b->width;
  const int32_t lower = a->y + a->height - b->y - b->height;
  return (double)absolute(a->x - b->x) <= most && (double)absolute(a->y - b->y) <= most &&
         (double)absolute(right) <= most && (double)absolute(lower) <= most;
}

// Rounds of: each window takes the lowest label of all similar windows. Every round reads the
// labels of the round before, so the number of rounds depends on the windows alone. Returns which
// half of `label` has the result.
static uint32_t label_groups(uint32_t id, uint32_t count, uint32_t windows) {
  for (uint32_t i = id; i < windows; i += count) label[0][i] = i;
  for (uint32_t half = 0;; half ^= 1) {
    if (id == 0) label_changes[half] = 0;
    gpusim_barrier();
    uint32_t changes = 0;
    for (uint32_t i = id; i < windows; i += count) {
      uint32_t lowest = label[half][i];
      for (uint32_t j = 0; j < windows; ++j) {
        const uint32_t other = label[half][j];
        if (other < lowest && similar(&passed_box[i], &passed_box[j])) lowest = other;
      }
      // A label names a window, whose own label may be lower yet.
      lowest = label[half][lowest];
      changes += lowest != label[half][i];
      label[half ^ 1][i] = lowest;
    }
    if (changes != 0) gpusim_count_u32(&label_changes[half], changes);
    gpusim_barrier();
    if (label_changes[half] == 0) return half ^ 1;
  }
}

// The mean box of each group, rounded as OpenCV does: in single precision, halves to even.
static void average_groups(uint32_t id, uint32_t count, uint32_t windows, const uint32_t* labels) {
  for (uint32_t i = id; i < windows; i += count) {
    group[i] = (group_t){.windows = 0};
    if (labels[i] != i) continue;
    box_t sum = {0, 0, 0, 0};
    int32_t members = 0;
    for (uint32_t j = i; j < windows; ++j) {
      if (labels[j] != i) continue;
      sum.x += passed_box[j].x;
      sum.y += passed_box[j].y;
      sum.width += passed_box[j].width;
      sum.height += passed_box[j].height;
      ++members;
    }
    const float share = 1.0f / (float)members;
    group[i].box = (box_t){round_even((double)((float)sum.x * share)),
                           round_even((double)((float)sum.y * share)),
                           round_even((double)((float)sum.width * share)),
                           round_even((double)((float)sum.height * share))};
    group[i].windows = members;
  }
}

// Whether `a` lies in `b`, made larger by a fifth on each side.
static inline int lies_in(const box_t* a, const box_t* b) {
  const int32_t dx = round_even(b->width * 0.2);
  const int32_t dy = round_even(b->height * 0.2);
  return a->x >= b->x - dx && a->y >= b->y - dy && a->x + a->width <= b->x + b->width + dx &&
         a->y + a->height <= b->y + b->height + dy;
}

static void choose_faces(uint32_t id, uint32_t count, uint32_t windows) {
  for (uint32_t i = id; i < windows; i += count) {
    const int32_t own = group[i].windows;
    if (own <= MIN_NEIGHBORS) continue;
    uint32_t is_face = 1;
    for (uint32_t j = 0; j < windows; ++j) {
      const int32_t others = group[j].windows;
      if (j == i || others <= MIN_NEIGHBORS) continue;
      if ((others > own && others > 3) || own < 3)
        is_face &= !lies_in(&group[i].box, &group[j].box);
    }
    group[i].is_face = is_face;
  }
}

#endif  // GPUSIM_FACE_DETECTION_GROUP_H
