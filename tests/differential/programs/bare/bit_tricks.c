// isa: aarch64
// Counting, reversing, rotating, isolating bits; through builtins and by hand.
#include "bare.h"

static NOINLINE int popcount_by_hand(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return (int)(x * 0x0101010101010101 >> 56);
}

static NOINLINE uint64_t reverse_bits(uint64_t x) {
  uint64_t r;
  __asm__("rbit %0, %1" : "=r"(r) : "r"(x));
  return r;
}

static NOINLINE uint32_t rotate32(uint32_t x, unsigned n) { return x << (n & 31) | x >> (-n & 31); }
static NOINLINE uint64_t rotate64(uint64_t x, unsigned n) { return x >> (n & 63) | x << (-n & 63); }
static NOINLINE uint64_t spread(uint32_t x) {
  uint64_t r = 0;
  for (int i = 0; i < 32; i++) r |= (uint64_t)(x >> i & 1) << 2 * i;
  return r;
}
static NOINLINE uint64_t swap_bytes(uint64_t x) {
  return __builtin_bswap64(x) ^ __builtin_bswap32((uint32_t)x) ^ __builtin_bswap16((uint16_t)x);
}
static NOINLINE uint32_t next_power(uint32_t x) {
  return x <= 1 ? 1 : 1u << (32 - __builtin_clz(x - 1));
}

int main(void) {
  for (int i = 0; i < 40; i++) {
    uint64_t x = (uint64_t)next_random() << 33 ^ next_random();
    if (i < 3) x = i == 0 ? 1 : i == 1 ? ~0ull : 0x8000000000000000;
    print("%16lx pop %d %d clz %d %d ctz %d ffs %d par %d clrsb %d\n", x, popcount_by_hand(x),
          __builtin_popcountll(x), __builtin_clzll(x), __builtin_clz((unsigned)x | 1),
          __builtin_ctzll(x), __builtin_ffsll((int64_t)x), __builtin_parityll(x),
          __builtin_clrsbll((int64_t)x));
    print("  %16lx %8x %16lx %16lx %16lx %u\n", reverse_bits(x), rotate32((uint32_t)x, (unsigned)i),
          rotate64(x, (unsigned)(3 * i)), spread((uint32_t)x), swap_bytes(x),
          next_power((uint32_t)(x >> 40)));
    print("  %16lx %16lx %16lx\n", x & -x, x & (x - 1), x ^ (x >> 1));
  }
  return 0;
}
