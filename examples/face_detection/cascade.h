// A cascade of boosted decision stumps over Haar features (Viola and Jones, "Rapid object detection
// using a boosted cascade of simple features", 2001) as tables, and the picture's size. TABLES_FILE
// is what make_tables.py wrote.
#ifndef GPUSIM_FACE_DETECTION_CASCADE_H
#define GPUSIM_FACE_DETECTION_CASCADE_H

#include <stdint.h>

// All integral images have rows of one length, so that a rectangle's corners are constants.
#define ROW (kPictureWidth + 1)
#define RECTANGLE(x, y, w, h) \
  { (y) * ROW + (x), (y)*ROW + (x) + (w), ((y) + (h)) * ROW + (x), ((y) + (h)) * ROW + (x) + (w) }

typedef struct {
  int32_t corners[3][4];  // from the window's own top left corner on
  float weight[3];        // the third is 0 where there are two rectangles
  float threshold;
  float below;  // what the stump adds if its feature is below the threshold, and if not
  float above;
} stump_t;

#include TABLES_FILE

extern const uint8_t picture_pixels[kPictureWidth * kPictureHeight];

#endif  // GPUSIM_FACE_DETECTION_CASCADE_H
