// bits: 64
// SHA-256; its constants are computed from cube and square roots of primes in 128-bit arithmetic.
#include "bare.h"

typedef unsigned __int128 u128;

static uint32_t constants[64], initial[8];

static NOINLINE uint64_t root(u128 x, int power) {
  uint64_t low = 0, high = (uint64_t)1 << 40;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    u128 value = (u128)middle * middle;
    if (power == 3) value *= middle;
    if (value <= x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void compute_constants(void) {
  unsigned count = 0;
  for (unsigned p = 2; count < 64; p++) {
    int prime = 1;
    for (unsigned d = 2; d * d <= p; d++) prime &= p % d != 0;
    if (!prime) continue;
    if (count < 8) initial[count] = (uint32_t)root((u128)p << 64, 2);
    constants[count++] = (uint32_t)root((u128)p << 96, 3);
  }
}

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static NOINLINE void block(uint32_t state[8], const uint8_t* p) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
           p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
    uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) state[i] += s[i];
}

static void digest(const char* text) {
  uint32_t state[8];
  uint8_t buffer[64];
  size_t total = length_of(text), n = total;
  memcpy(state, initial, sizeof state);
  for (; n >= 64; n -= 64, text += 64) block(state, (const uint8_t*)text);
  memset(buffer, 0, sizeof buffer);
  memcpy(buffer, text, n);
  buffer[n] = 0x80;
  if (n >= 56) {
    block(state, buffer);
    memset(buffer, 0, sizeof buffer);
  }
  for (int i = 0; i < 8; i++) buffer[63 - i] = (uint8_t)(total * 8 >> 8 * i);
  block(state, buffer);
  for (int i = 0; i < 8; i++) print("%8x", state[i]);
  print("\n");
}

int main(void) {
  compute_constants();
  digest("");
  digest("abc");
  digest("The quick brown fox jumps over the lazy dog, and then once more over the same lazy dog.");
  digest("0123456789012345678901234567890123456789012345678901234567");
  return 0;
}
