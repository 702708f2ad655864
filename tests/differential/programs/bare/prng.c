// Generators of random numbers: xorshift, PCG, Mersenne twister, splitmix, LFSR.
#include "bare.h"

static uint32_t mt[624];
static int mt_index;

static NOINLINE void mt_seed(uint32_t seed) {
  mt[0] = seed;
  for (uint32_t i = 1; i < 624; i++) mt[i] = 1812433253u * (mt[i - 1] ^ mt[i - 1] >> 30) + i;
  mt_index = 624;
}

static NOINLINE uint32_t mt_next(void) {
  if (mt_index == 624) {
    for (int i = 0; i < 624; i++) {
      uint32_t y = (mt[i] & 0x80000000u) | (mt[(i + 1) % 624] & 0x7fffffffu);
      mt[i] = mt[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    mt_index = 0;
  }
  uint32_t y = mt[mt_index++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}

static uint64_t xs = 88172645463325252ull, pcg = 42, sm = 7;
static uint16_t lfsr = 0xace1;

static NOINLINE uint64_t xorshift(void) {
  xs ^= xs << 13;
  xs ^= xs >> 7;
  return xs ^= xs << 17;
}
static NOINLINE uint32_t pcg_next(void) {
  uint64_t old = pcg;
  pcg = old * 6364136223846793005ull + 1442695040888963407ull;
  uint32_t shifted = (uint32_t)((old >> 18 ^ old) >> 27), rotation = (uint32_t)(old >> 59);
  return shifted >> rotation | shifted << (-rotation & 31);
}
static NOINLINE uint64_t splitmix(void) {
  uint64_t z = sm += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static NOINLINE uint16_t lfsr_next(void) {
  return lfsr = (uint16_t)(lfsr >> 1 ^ (-(lfsr & 1) & 0xb400));
}

int main(void) {
  unsigned period = 0;
  mt_seed(5489);
  uint32_t first = mt_next();
  for (int i = 0; i < 12; i++)
    print("%16lx %8x %8x %16lx %4x\n", xorshift(), pcg_next(), mt_next(), splitmix(), lfsr_next());
  for (int i = 0; i < 1000; i++) mt_next();
  print("%8x %8x\n", first, mt_next());
  uint16_t start = lfsr;
  do period++;
  while (lfsr_next() != start && period < 3000);
  print("%u\n", period);
  return first == 3499211612u ? 0 : 1;
}
