// isa: aarch64
// Quotients and remainders of 32, 64 and 128 bits, by variables and by constants.
#include "bare.h"

typedef __int128 i128;
typedef unsigned __int128 u128;

static NOINLINE int32_t div32(int32_t a, int32_t b) { return a / b; }
static NOINLINE int32_t mod32(int32_t a, int32_t b) { return a % b; }
static NOINLINE uint32_t udiv32(uint32_t a, uint32_t b) { return a / b; }
static NOINLINE uint32_t umod32(uint32_t a, uint32_t b) { return a % b; }
static NOINLINE int64_t div64(int64_t a, int64_t b) { return a / b; }
static NOINLINE int64_t mod64(int64_t a, int64_t b) { return a % b; }
static NOINLINE uint64_t udiv64(uint64_t a, uint64_t b) { return a / b; }
static NOINLINE uint64_t umod64(uint64_t a, uint64_t b) { return a % b; }
static NOINLINE i128 div128(i128 a, i128 b) { return a / b; }
static NOINLINE u128 umod128(u128 a, u128 b) { return a % b; }

static NOINLINE int64_t by_constants(int64_t a) {
  return a / 3 + a / 7 * 2 + a % 10 * 3 + a / -5 + a / 64 + a % 64 + a / 1000000007 +
         (int32_t)a / 9 + (int32_t)a % 13 + (int64_t)((uint64_t)a / 11) + (uint16_t)a / 77;
}

int main(void) {
  static const int64_t values[] = {1,
                                   -1,
                                   2,
                                   -3,
                                   10,
                                   1000,
                                   -65536,
                                   0x7fffffff,
                                   -INT64_C(0x80000000),
                                   INT64_C(0x123456789abcdef),
                                   INT64_MAX,
                                   -77777777777};
  for (size_t i = 0; i < LENGTH(values); i++) {
    for (size_t j = 0; j < LENGTH(values); j++) {
      int64_t a = values[i], b = values[j];
      if ((int32_t)b == 0) continue;
      if ((int32_t)a != INT32_MIN || (int32_t)b != -1)
        print("%d %d ", div32((int32_t)a, (int32_t)b), mod32((int32_t)a, (int32_t)b));
      print("%u %u ", udiv32((uint32_t)a, (uint32_t)b), umod32((uint32_t)a, (uint32_t)b));
      print("%ld %ld %lu %lu ", div64(a, b), mod64(a, b), udiv64((uint64_t)a, (uint64_t)b),
            umod64((uint64_t)a, (uint64_t)b));
      i128 wide = (i128)a * 0x1000000000000001 + b;
      i128 q = div128(wide, b);
      u128 r = umod128((u128)wide, (u128)(uint64_t)b << 20 | 3);
      print("%16lx%16lx %16lx%16lx\n", (uint64_t)(q >> 64), (uint64_t)q, (uint64_t)(r >> 64),
            (uint64_t)r);
    }
    print("constants %ld\n", by_constants(values[i]));
  }
  // The instruction itself defines what C does not.
  int64_t q;
  __asm__ volatile("sdiv %0, %1, %2" : "=r"(q) : "r"(INT64_MIN), "r"((int64_t)-1));
  print("min/-1 %lx\n", (uint64_t)q);
  __asm__ volatile("udiv %0, %1, xzr" : "=r"(q) : "r"((int64_t)99));
  print("99/0 %lx\n", (uint64_t)q);
  return 0;
}
