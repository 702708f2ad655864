// malloc, calloc, realloc, free, aligned_alloc in many sizes and orders; contents are checked.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSlots = 64 };
static unsigned char* slots[kSlots];
static size_t sizes[kSlots];
static uint32_t state = 12345;

static uint32_t next(void) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

static int intact(int i) {
  for (size_t k = 0; k < sizes[i]; k += 1 + sizes[i] / 32)
    if (slots[i][k] != (unsigned char)(i + k)) return 0;
  return 1;
}

static void fill(int i) {
  for (size_t k = 0; k < sizes[i]; k++) slots[i][k] = (unsigned char)((size_t)i + k);
}

int main(void) {
  int wrong = 0, live = 0;
  size_t total = 0;
  for (int round = 0; round < 500; round++) {
    int i = (int)(next() % kSlots);
    uint32_t what = next() % 8;
    size_t size = next() % 16 == 0 ? next() % 200000 : next() % 8 ? next() % 200 : next() % 5000;
    if (slots[i]) {
      wrong += !intact(i);
      if (what < 3) {
        size_t kept = size < sizes[i] ? size : sizes[i];
        slots[i] = realloc(slots[i], size + 1);
        sizes[i] = kept;
        wrong += !intact(i);
        sizes[i] = size;
        fill(i);
        continue;
      }
      free(slots[i]);
      slots[i] = NULL;
    } else {
      slots[i] = what == 0   ? calloc(size + 1, 1)
                 : what == 1 ? aligned_alloc(64, (size + 64) & ~(size_t)63)
                             : malloc(size + 1);
      if (what == 0)
        for (size_t k = 0; k <= size; k++) wrong += slots[i][k] != 0;
      if (what == 1) wrong += (uintptr_t)slots[i] % 64 != 0;
      wrong += (uintptr_t)slots[i] % 16 != 0;
      sizes[i] = size;
      fill(i);
      total += size;
    }
  }
  for (int i = 0; i < kSlots; i++) {
    if (!slots[i]) continue;
    wrong += !intact(i);
    live++;
    free(slots[i]);
  }
  char* big = malloc(4 << 20);  // beyond the threshold for mmap
  memset(big, 7, 4 << 20);
  big = realloc(big, 8 << 20);
  wrong += big[(4 << 20) - 1] != 7;
  free(big);
  printf("total %zu live %d wrong %d\n", total, live, wrong);
  return wrong != 0;
}
