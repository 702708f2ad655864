// The picture that the image examples work on: 8-bit grey, rows from the top, drawn by
// draw_picture.c when the project is built and embedded by picture.S.
#ifndef GPUSIM_PICTURE_H
#define GPUSIM_PICTURE_H

#include <stdint.h>

enum { PICTURE_WIDTH = 1024, PICTURE_HEIGHT = 1024 };

extern const uint8_t picture_pixels[];

#endif  // GPUSIM_PICTURE_H
