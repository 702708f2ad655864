// The vector extension as programs use it: loops in pieces of vl, strings read up to a page that is
// not there, segments, masks, reductions. Each against plain C. Exit status 0 if all is right.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kCount = 203, kPage = 4096 };
static int failures;

static void check(int right, const char* what) {
  if (right) return;
  printf("FAILED: %s\n", what);
  ++failures;
}

// y[i] += k * x[i]
static void saxpy(size_t n, float k, const float* x, float* y) {
  for (size_t vl; n > 0; n -= vl, x += vl, y += vl) {
    __asm__ volatile(
        "vsetvli %0, %1, e32, m8, ta, ma\n\t"
        "vle32.v v0, (%2)\n\t"
        "vle32.v v8, (%3)\n\t"
        "vfmacc.vf v8, %4, v0\n\t"
        "vse32.v v8, (%3)"
        : "=&r"(vl)
        : "r"(n), "r"(x), "r"(y), "f"(k)
        : "memory");
  }
}

static size_t length(const char* s) {
  const char* at = s;
  for (;;) {
    long first;
    size_t vl;
    __asm__ volatile(
        "vsetvli %1, %3, e8, m4, ta, ma\n\t"
        "vle8ff.v v8, (%2)\n\t"
        "csrr %1, vl\n\t"
        "vmseq.vi v0, v8, 0\n\t"
        "vfirst.m %0, v0"
        : "=r"(first), "=&r"(vl)
        : "r"(at), "r"(-1L)
        : "memory");
    if (first >= 0) return (size_t)(at - s) + (size_t)first;
    at += vl;
  }
}

// Sums of the odd and of the even elements that are positive.
static void sums(size_t n, const short* pairs, long result[2]) {
  result[0] = result[1] = 0;
  for (size_t vl; n > 0; n -= vl, pairs += 2 * vl) {
    long even, odd;
    __asm__ volatile(
        "vsetvli %0, %3, e16, m1, ta, mu\n\t"
        "vlseg2e16.v v8, (%4)\n\t"
        "vsetivli zero, 1, e32, m1, ta, ma\n\t"
        "vmv.s.x v12, zero\n\t"
        "vsetvli zero, %0, e16, m1, ta, mu\n\t"
        "vmsgt.vi v0, v8, 0\n\t"
        "vwredsum.vs v13, v8, v12, v0.t\n\t"
        "vmsgt.vi v0, v9, 0\n\t"
        "vwredsum.vs v14, v9, v12, v0.t\n\t"
        "vsetivli zero, 1, e32, m1, ta, ma\n\t"
        "vmv.x.s %1, v13\n\t"
        "vmv.x.s %2, v14"
        : "=&r"(vl), "=&r"(even), "=&r"(odd)
        : "r"(n), "r"(pairs)
        : "memory");
    result[0] += even;
    result[1] += odd;
  }
}

int main(void) {
  static float x[kCount], y[kCount], expected[kCount];
  static short pairs[2 * kCount];
  long positive[2] = {0, 0}, found[2];
  for (int i = 0; i < kCount; ++i) {
    x[i] = (float)(i * 3 - 100);
    y[i] = (float)i;
    expected[i] = y[i] + 0.5f * x[i];
    for (int k = 0; k < 2; ++k) {
      const short value = pairs[2 * i + k] = (short)(i * 1237 + k * 77);
      if (value > 0) positive[k] += value;
    }
  }
  saxpy(kCount, 0.5f, x, y);
  check(memcmp(y, expected, sizeof y) == 0, "a loop in pieces");
  sums(kCount, pairs, found);
  check(found[0] == positive[0] && found[1] == positive[1], "segments and masked reductions");

  char* const pages =
      mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(pages != MAP_FAILED && munmap(pages + kPage, kPage) == 0, "a page with nothing behind it");
  for (int n = 0; n < 90; ++n) {
    char* const s = pages + kPage - 1 - n;
    memset(s, 'x', (size_t)n);
    s[n] = 0;
    check(length(s) == (size_t)n, "a string at the end of a page");
  }
  return failures != 0;
}
