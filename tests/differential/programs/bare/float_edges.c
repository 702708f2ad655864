// isa: aarch64
// Arithmetic and comparison of floats and doubles over zeros, subnormals, infinities, NaNs.
#include "bare.h"

#define TESTS(type, word, name)                                                                    \
  static NOINLINE void name(word x, word y) {                                                      \
    type a, b, r[9];                                                                               \
    memcpy(&a, &x, sizeof a);                                                                      \
    memcpy(&b, &y, sizeof b);                                                                      \
    r[0] = a + b;                                                                                  \
    r[1] = a - b;                                                                                  \
    r[2] = a * b;                                                                                  \
    r[3] = a / b;                                                                                  \
    r[4] = -a;                                                                                     \
    r[5] = a > b ? a : b;                                                                          \
    r[6] = a * b + a;                                                                              \
    __asm__("fmax %" #name "0, %" #name "1, %" #name "2" : "=w"(r[7]) : "w"(a), "w"(b));           \
    __asm__("fminnm %" #name "0, %" #name "1, %" #name "2" : "=w"(r[8]) : "w"(a), "w"(b));         \
    int c = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 |               \
            (a >= b) << 5 | __builtin_isunordered(a, b) << 6 | __builtin_islessgreater(a, b) << 7; \
    for (int i = 0; i < 9; i++) {                                                                  \
      word w;                                                                                      \
      memcpy(&w, &r[i], sizeof w);                                                                 \
      out_unsigned(w, 16, 2 * (int)sizeof w);                                                      \
      out_char(' ');                                                                               \
    }                                                                                              \
    print("%x\n", c);                                                                              \
  }

TESTS(float, uint32_t, s)
TESTS(double, uint64_t, d)

static uint64_t square_root(uint64_t x) {
  double a, r;
  memcpy(&a, &x, 8);
  __asm__("fsqrt %d0, %d1" : "=w"(r) : "w"(a));
  memcpy(&x, &r, 8);
  return x;
}

int main(void) {
  static const uint32_t singles[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                     0x3f800000, 0xbf800001, 0x7f7fffff, 0x7f800000, 0xff800000,
                                     0x7fc00001, 0x7f800001, 0x4b800000, 0x33ffffff};
  static const uint64_t wide[] = {0,
                                  0x8000000000000000,
                                  1,
                                  0x000fffffffffffff,
                                  0x0010000000000000,
                                  0x3ff0000000000000,
                                  0xbff0000000000001,
                                  0x7fefffffffffffff,
                                  0x7ff0000000000000,
                                  0xfff0000000000000,
                                  0x7ff8000000000123,
                                  0x7ff0000000000456,
                                  0x4330000000000001,
                                  0x3ca0000000000001};
  for (size_t i = 0; i < LENGTH(singles); i++)
    for (size_t j = 0; j < LENGTH(singles); j++) s(singles[i], singles[j]);
  for (size_t i = 0; i < LENGTH(wide); i++) {
    for (size_t j = 0; j < LENGTH(wide); j++) d(wide[i], wide[j]);
    print("sqrt %16lx\n", square_root(wide[i]));
  }
  return 0;
}
