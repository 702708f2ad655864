// MD5 with its table made by sin(); the test strings of its definition.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t table[64];
static const int kShifts[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static void block(uint32_t h[4], const uint8_t* p) {
  uint32_t m[16], a = h[0], b = h[1], c = h[2], d = h[3];
  memcpy(m, p, 64);
  for (int i = 0; i < 64; i++) {
    uint32_t f;
    int g;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d), g = i;
        break;
      case 1:
        f = (d & b) | (~d & c), g = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d, g = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d), g = 7 * i % 16;
    }
    f += a + table[i] + m[g];
    a = d;
    d = c;
    c = b;
    int s = kShifts[i / 16][i % 4];
    b += f << s | f >> (32 - s);
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
}

static void md5(const char* text) {
  uint32_t h[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  uint64_t n = strlen(text), bits = n * 8;
  uint8_t last[128] = {0};
  const char* p = text;
  for (; n >= 64; n -= 64, p += 64) block(h, (const uint8_t*)p);
  memcpy(last, p, n);
  last[n] = 0x80;
  memcpy(last + (n < 56 ? 56 : 120), &bits, 8);
  block(h, last);
  if (n >= 56) block(h, last + 64);
  for (int i = 0; i < 16; i++) printf("%02x", ((const uint8_t*)h)[i]);
  printf(" \"%s\"\n", text);
}

int main(void) {
  for (int i = 0; i < 64; i++) table[i] = (uint32_t)(4294967296.0 * fabs(sin(i + 1)));
  md5("");
  md5("abc");
  md5("message digest");
  md5("abcdefghijklmnopqrstuvwxyz");
  md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890");
  return 0;
}
