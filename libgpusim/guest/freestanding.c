// What a guest program needs in place of a C library: its arguments, and the four functions that GCC
// calls of its own accord in freestanding code (GCC manual, "Standards").
#include "gpusim_guest.h"

int gpusim_argc(void) { return (int)gpusim_initial_stack()[0]; }

char** gpusim_argv(void) { return (char**)(gpusim_initial_stack() + 1); }

uint64_t gpusim_auxval(uint64_t type, uint64_t otherwise) {
  const uintptr_t* p = gpusim_initial_stack() + 1 + gpusim_argc() + 1;
  while (*p++ != 0) {
  }  // the environment
  for (; p[0] != 0; p += 2) {
    if (p[0] == type) return p[1];
  }
  return otherwise;
}

// This file is compiled with -fno-tree-loop-distribute-patterns: GCC would otherwise recognise
// these loops as what they implement, and call them from themselves.

typedef uint64_t __attribute__((may_alias)) word_t;

static int both_aligned(const void* a, const void* b) {
  return (((uintptr_t)a | (uintptr_t)b) & 7) == 0;
}

static void copy_upwards(unsigned char* t, const unsigned char* f, size_t n) {
  if (both_aligned(t, f)) {
    for (; n >= 8; n -= 8, t += 8, f += 8) *(word_t*)(void*)t = *(const word_t*)(const void*)f;
  }
  for (; n != 0; --n) *t++ = *f++;
}

void* memcpy(void* restrict to, const void* restrict from, size_t n) {
  copy_upwards((unsigned char*)to, (const unsigned char*)from, n);
  return to;
}

void* memmove(void* to, const void* from, size_t n) {
  unsigned char* t = (unsigned char*)to;
  const unsigned char* f = (const unsigned char*)from;
  // As unsigned numbers the difference is also large where `to` lies below `from`.
  if ((uintptr_t)t - (uintptr_t)f >= n) {
    copy_upwards(t, f, n);
    return to;
  }
  while (n != 0) {
    --n;
    t[n] = f[n];
  }
  return to;
}

void* memset(void* to, int value, size_t n) {
  unsigned char* t = (unsigned char*)to;
  const unsigned char byte = (unsigned char)value;
  for (; n != 0 && ((uintptr_t)t & 7) != 0; --n) *t++ = byte;
  const uint64_t pattern = UINT64_C(0x0101010101010101) * byte;
  for (; n >= 8; n -= 8, t += 8) *(word_t*)(void*)t = pattern;
  for (; n != 0; --n) *t++ = byte;
  return to;
}

int memcmp(const void* a, const void* b, size_t n) {
  const unsigned char* p = (const unsigned char*)a;
  const unsigned char* q = (const unsigned char*)b;
  for (; n != 0; --n, ++p, ++q) {
    if (*p != *q) return *p < *q ? -1 : 1;
  }
  return 0;
}

size_t strlen(const char* text) {
  size_t n = 0;
  while (text[n] != 0) ++n;
  return n;
}
