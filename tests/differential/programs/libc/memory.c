// memcpy, memmove, memset, memcmp: all small lengths, alignments and overlaps, and long blocks.
#include <stdio.h>
#include <string.h>

static unsigned char a[70000], b[70000], c[600];

static unsigned long hash(const unsigned char* p, size_t n) {
  unsigned long h = 14695981039346656037ul;
  while (n--) h = (h ^ *p++) * 1099511628211ul;
  return h;
}

int main(void) {
  int wrong = 0;
  unsigned long h = 0;
  for (size_t i = 0; i < sizeof a; i++) a[i] = (unsigned char)(i * 131 >> 3);
  for (size_t n = 0; n < 280; n += 1 + n / 24) {
    for (size_t from = 0; from < 16; from += 3) {
      for (size_t to = 0; to < 16; to += 5) {
        memset(c, 0xee, 320);
        memcpy(c + to, a + from, n);
        wrong += memcmp(c + to, a + from, n) != 0 || c[to + n] != 0xee;
        memmove(c + from, c + to, n);
        wrong += memcmp(c + from, a + from, n) != 0;
        memset(c + to, (int)n, n / 2);
        h = h * 31 + hash(c, 64);
        if (n) {
          c[to + n - 1] ^= 1;
          int d = memcmp(c + to, c + to + 1, n - 1);
          h = h * 31 + (unsigned long)(d < 0 ? 1 : d > 0 ? 2 : 3);
        }
      }
    }
  }
  static const size_t lengths[] = {1000, 4096, 4097, 16384, 32771, 65536};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    memcpy(b + i, a + 2 * i + 1, lengths[i]);
    wrong += memcmp(b + i, a + 2 * i + 1, lengths[i]) != 0;
    memmove(b + 17, b, lengths[i]);
    memmove(b + 3, b + 30, lengths[i]);
    memset(b + 100, 0, lengths[i] / 2);
    h = h * 31 + hash(b, lengths[i] < 3000 ? lengths[i] : 3000);
  }
  printf("%lx wrong %d\n", h, wrong);
  return wrong != 0;
}
