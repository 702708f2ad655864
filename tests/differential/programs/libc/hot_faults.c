// Loops that ran often before an access faults at a border of pages, for every width.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fault_return.h"

enum { kPages = 8 };

typedef struct __attribute__((packed, aligned(1))) {
  uint16_t x;
} U16;
typedef struct __attribute__((packed, aligned(1))) {
  uint32_t x;
} U32;
typedef struct __attribute__((packed, aligned(1))) {
  uint64_t x;
} U64;
typedef struct __attribute__((packed, aligned(1))) {
  uint64_t x, y;
} U128;

static volatile uint64_t progress;
#define WALK(name, type, access)                               \
  __attribute__((noinline)) static uint64_t name(uint8_t* p) { \
    uint64_t sum = 0;                                          \
    for (uint64_t i = 0;; ++i) {                               \
      progress = i;                                            \
      type* at = (type*)(p + i);                               \
      access;                                                  \
    }                                                          \
    return sum;                                                \
  }
WALK(load8, uint8_t, sum += *(volatile uint8_t*)at)
WALK(load16, U16, sum += ((volatile U16*)at)->x)
WALK(load32, U32, sum += ((volatile U32*)at)->x)
WALK(load64, U64, sum += ((volatile U64*)at)->x)
WALK(load128, U128, sum += ((volatile U128*)at)->x + ((volatile U128*)at)->y)
WALK(store8, uint8_t, *(volatile uint8_t*)at = (uint8_t)i)
WALK(store16, U16, ((volatile U16*)at)->x = (uint16_t)i)
WALK(store32, U32, ((volatile U32*)at)->x = (uint32_t)i)
WALK(store64, U64, ((volatile U64*)at)->x = i)
// Two instructions each: what is stored before the fault may be seen.
WALK(copy, U128, memcpy(at, pages, 16); __asm__ volatile("" ::: "memory"))

static uint64_t sum_of_pages(void) {
  uint64_t sum = 0;
  for (int i = 0; i < kPages; ++i) mprotect(pages + i * kPage, kPage, PROT_READ | PROT_WRITE);
  for (int i = 0; i < kPages * kPage; ++i) sum = sum * 31 + pages[i];
  return sum;
}

static void borders(void) {
  uint64_t (*const walks[])(uint8_t*) = {load8,  load16,  load32,  load64,  load128,
                                         store8, store16, store32, store64, copy};
  const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
  for (volatile size_t w = 0; w < sizeof walks / sizeof *walks; ++w)
    for (volatile int p = 0; p < 3; ++p) {
      memset(pages, 7, kPages * kPage);
      mprotect(pages + 4 * kPage, kPage, protections[p]);
      mprotect(pages + 5 * kPage, kPage, PROT_NONE);
      if (sigsetjmp(back, 1) == 0) walks[w](pages + kPage + 5);
      printf("walk %zu, %d: signal %d at %lx after %lu, ", w, p, last_signal,
             (unsigned long)fault_at, (unsigned long)progress);
      printf("memory %016lx\n", (unsigned long)sum_of_pages());
    }
}

int main(void) {
  return_from_faults();
  pages = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  borders();
  return 0;
}
