// Keeps the marked items of a list, in order, with many cores: counts per block, adds the counts
// up, copies. What comes out does not depend on the number of cores, unlike a list that cores
// append to.
#ifndef GPUSIM_FACE_DETECTION_COMPACT_H
#define GPUSIM_FACE_DETECTION_COMPACT_H

#include "gpusim_guest.h"

enum { kBlock = 32, kBlocksPerGroup = 64 };

typedef struct {
  uint32_t kept;    // the result's length
  uint32_t* block;  // room for items / kBlock + 1
  uint32_t* group;  // room for items / kBlock / kBlocksPerGroup + 1
} compact_space_t;

// All cores call it. keep[i] is 0 or 1 for i < items; `from` may be null, then item i is i.
static void compact(uint32_t id, uint32_t count, const uint8_t* keep, const uint32_t* from,
                    uint32_t items, uint32_t* to, compact_space_t* space) {
  const uint32_t blocks = (items + kBlock - 1) / kBlock;
  const uint32_t groups = (blocks + kBlocksPerGroup - 1) / kBlocksPerGroup;
  gpusim_barrier();
  for (uint32_t b = id; b < blocks; b += count) {
    const uint32_t end = b == blocks - 1 ? items : (b + 1) * kBlock;
    uint32_t kept = 0;
    for (uint32_t i = b * kBlock; i < end; ++i) kept += keep[i];
    space->block[b] = kept;
  }
  gpusim_barrier();
  for (uint32_t g = id; g < groups; g += count) {
    const uint32_t end = g == groups - 1 ? blocks : (g + 1) * kBlocksPerGroup;
    uint32_t kept = 0;
    for (uint32_t b = g * kBlocksPerGroup; b < end; ++b) kept += space->block[b];
    space->group[g] = kept;
  }
  gpusim_barrier();
  if (id == 0) {
    uint32_t before = 0;
    for (uint32_t g = 0; g < groups; ++g) {
      const uint32_t kept = space->group[g];
      space->group[g] = before;
      before += kept;
    }
    space->kept = before;
  }
  gpusim_barrier();
  for (uint32_t b = id; b < blocks; b += count) {
    if (space->block[b] == 0) continue;
    const uint32_t group = b / kBlocksPerGroup;
    uint32_t at = space->group[group];
    for (uint32_t other = group * kBlocksPerGroup; other < b; ++other) at += space->block[other];
    const uint32_t end = b == blocks - 1 ? items : (b + 1) * kBlock;
    for (uint32_t i = b * kBlock; i < end; ++i) {
      if (keep[i]) to[at++] = from ? from[i] : i;
    }
  }
  gpusim_barrier();
}

#endif  // GPUSIM_FACE_DETECTION_COMPACT_H
