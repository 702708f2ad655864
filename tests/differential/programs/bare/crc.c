// Check sums: CRC-32 by bit and by table, CRC-16, Adler-32, Fletcher-16.
#include "bare.h"

static uint32_t table[256];

static NOINLINE uint32_t crc32_bits(const uint8_t* p, size_t n) {
  uint32_t crc = ~0u;
  while (n--) {
    crc ^= *p++;
    for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
  }
  return ~crc;
}

static NOINLINE uint32_t crc32_table(const uint8_t* p, size_t n) {
  uint32_t crc = ~0u;
  while (n--) crc = crc >> 8 ^ table[(crc ^ *p++) & 255];
  return ~crc;
}

static NOINLINE uint16_t crc16(const uint8_t* p, size_t n) {
  uint16_t crc = 0xffff;
  while (n--) {
    crc ^= (uint16_t)(*p++ << 8);
    for (int i = 0; i < 8; i++) crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
  }
  return crc;
}

static NOINLINE uint32_t adler(const uint8_t* p, size_t n) {
  uint32_t a = 1, b = 0;
  while (n--) {
    a = (a + *p++) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static NOINLINE uint16_t fletcher(const uint8_t* p, size_t n) {
  unsigned a = 0, b = 0;
  while (n--) {
    a = (a + *p++) % 255;
    b = (b + a) % 255;
  }
  return (uint16_t)(b << 8 | a);
}

int main(void) {
  static uint8_t data[1000];
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
    table[i] = c;
  }
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)next_random();
  print("check %8x\n", crc32_bits((const uint8_t*)"123456789", 9));
  for (size_t n = 0; n < sizeof data; n = n * 2 + 1)
    print("%u: %8x %8x %4x %8x %4x\n", (unsigned)n, crc32_bits(data, n), crc32_table(data, n),
          crc16(data, n), adler(data, n), fletcher(data, n));
  return crc32_bits((const uint8_t*)"123456789", 9) == 0xcbf43926 ? 0 : 1;
}
