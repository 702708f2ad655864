// isa: aarch64
// flags: -march=armv8-a+crc
// The CRC32 instructions in all widths, both polynomials, against a bit-wise loop.
#include "bare.h"

static uint32_t by_bits(uint32_t crc, uint64_t data, int bytes, uint32_t polynomial) {
  for (int i = 0; i < bytes; i++) {
    crc ^= (uint8_t)(data >> 8 * i);
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (polynomial & (0 - (crc & 1)));
  }
  return crc;
}

int main(void) {
  int wrong = 0;
  for (int i = 0; i < 50; i++) {
    uint64_t data = (uint64_t)next_random() << 32 | next_random();
    uint32_t crc = next_random();
    uint32_t got[8] = {__builtin_aarch64_crc32b(crc, (uint8_t)data),
                       __builtin_aarch64_crc32h(crc, (uint16_t)data),
                       __builtin_aarch64_crc32w(crc, (uint32_t)data),
                       __builtin_aarch64_crc32x(crc, data),
                       __builtin_aarch64_crc32cb(crc, (uint8_t)data),
                       __builtin_aarch64_crc32ch(crc, (uint16_t)data),
                       __builtin_aarch64_crc32cw(crc, (uint32_t)data),
                       __builtin_aarch64_crc32cx(crc, data)};
    for (int k = 0; k < 8; k++) {
      wrong += got[k] != by_bits(crc, data, 1 << (k & 3), k < 4 ? 0xedb88320 : 0x82f63b78);
      print("%8x ", got[k]);
    }
    print("\n");
  }
  print("wrong: %d\n", wrong);
  return wrong;
}
