/* Guests that take memory without end. */
#include <stdint.h>

static uint64_t deeper(uint64_t n) {
  volatile char frame[4096];
  frame[n & 4095] = 1;
  return n == 0 ? 0 : deeper(n - 1) + frame[n & 4095];
}
uint64_t (*volatile next)(uint64_t) = deeper;

/* 7.5 MiB of stack on each core, then again. */
void recurse(void) {
  for (;;) next(1900);
}

static long map(uint64_t size) {
  register long x8 __asm__("x8") = 222;
  register long x0 __asm__("x0") = 0;
  register long x1 __asm__("x1") = (long)size;
  register long x2 __asm__("x2") = 3;
  register long x3 __asm__("x3") = 0x22;
  register long x4 __asm__("x4") = -1;
  register long x5 __asm__("x5") = 0;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
/* Mappings until there is no room, 16 GiB in the test. */
void touch_all(void) {
  const uint64_t size = 7 << 20;
  for (;;) {
    volatile char *p = (volatile char *)map(size);
    if ((long)p < 0) continue;
    for (uint64_t at = 0; at < size; at += 4096) p[at] = 1;
  }
}

void _start(void) {
  for (;;) {
  }
}
