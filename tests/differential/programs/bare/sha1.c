// SHA-1 of texts of all lengths up to three blocks.
#include "bare.h"

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static NOINLINE void block(uint32_t h[5], const uint8_t* p) {
  uint32_t w[80];
  for (int i = 0; i < 16; i++) {
    uint32_t word;
    memcpy(&word, p + 4 * i, 4);
    w[i] = __builtin_bswap32(word);
  }
  for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 80; i++) {
    uint32_t f, k;
    if (i < 20)
      f = (b & c) | (~b & d), k = 0x5a827999;
    else if (i < 40)
      f = b ^ c ^ d, k = 0x6ed9eba1;
    else if (i < 60)
      f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
    else
      f = b ^ c ^ d, k = 0xca62c1d6;
    uint32_t t = rotate(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = t;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
}

static NOINLINE void sha1(const uint8_t* p, size_t total, uint32_t h[5]) {
  static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint8_t last[128] = {0};
  size_t n = total;
  memcpy(h, start, sizeof start);
  for (; n >= 64; n -= 64, p += 64) block(h, p);
  memcpy(last, p, n);
  last[n] = 0x80;
  size_t size = n < 56 ? 64 : 128;
  for (int i = 0; i < 8; i++) last[size - 1 - (size_t)i] = (uint8_t)(total * 8 >> 8 * i);
  for (size_t i = 0; i < size; i += 64) block(h, last + i);
}

int main(void) {
  static uint8_t text[192];
  uint32_t h[5], all[5] = {0};
  sha1((const uint8_t*)"abc", 3, h);
  print("%8x%8x%8x%8x%8x\n", h[0], h[1], h[2], h[3], h[4]);
  for (size_t n = 0; n < sizeof text; n += 7) {
    sha1(text, n, h);
    for (int i = 0; i < 5; i++) all[i] = all[i] * 3 + h[i];
    for (size_t i = 0; i < 7 && n + i < sizeof text; i++) text[n + i] = (uint8_t)(n * 5 + i);
  }
  print("%8x%8x%8x%8x%8x\n", all[0], all[1], all[2], all[3], all[4]);
  return h[0] == 0;
}
