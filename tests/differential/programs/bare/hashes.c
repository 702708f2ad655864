// FNV-1a, a Murmur-like mix, SipHash-2-4 and Bernstein's hash of growing texts.
#include "bare.h"

static NOINLINE uint64_t fnv(const uint8_t* p, size_t n) {
  uint64_t h = 0xcbf29ce484222325;
  while (n--) h = (h ^ *p++) * 0x100000001b3;
  return h;
}

static NOINLINE uint32_t murmur(const uint8_t* p, size_t n, uint32_t h) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    uint32_t k;
    memcpy(&k, p + i, 4);
    k *= 0xcc9e2d51;
    k = k << 15 | k >> 17;
    h ^= k * 0x1b873593;
    h = (h << 13 | h >> 19) * 5 + 0xe6546b64;
  }
  for (uint32_t k = 0; i < n; i++) k = k << 8 | p[i], h ^= k;
  h ^= (uint32_t)n;
  h = (h ^ h >> 16) * 0x85ebca6b;
  h = (h ^ h >> 13) * 0xc2b2ae35;
  return h ^ h >> 16;
}

static uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[1] = rotl(v[1], 13) ^ v[0];
  v[0] = rotl(v[0], 32);
  v[2] += v[3];
  v[3] = rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = rotl(v[1], 17) ^ v[2];
  v[2] = rotl(v[2], 32);
}

static NOINLINE uint64_t sip(const uint8_t* p, size_t n, uint64_t k0, uint64_t k1) {
  uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                   k1 ^ 0x7465646279746573};
  uint64_t last = (uint64_t)n << 56;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t m;
    memcpy(&m, p, 8);
    v[3] ^= m;
    sip_round(v);
    sip_round(v);
    v[0] ^= m;
  }
  for (size_t i = 0; i < n; i++) last |= (uint64_t)p[i] << 8 * i;
  v[3] ^= last;
  sip_round(v);
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static NOINLINE uint32_t bernstein(const uint8_t* p, size_t n) {
  uint32_t h = 5381;
  while (n--) h = h * 33 + *p++;
  return h;
}

int main(void) {
  static uint8_t text[64];
  for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)i;
  for (size_t n = 0; n < sizeof text; n += 3)
    print("%u %16lx %8x %16lx %8x\n", (unsigned)n, fnv(text, n), murmur(text, n, 42),
          sip(text, n, 0x0706050403020100, 0x0f0e0d0c0b0a0908), bernstein(text, n));
  return sip(text, 15, 0x0706050403020100, 0x0f0e0d0c0b0a0908) == 0xa129ca6149be45e5 ? 0 : 1;
}
