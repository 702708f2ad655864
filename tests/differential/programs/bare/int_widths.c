// Arithmetic, shifts and comparisons in every integer width, wrap-around included.
#include "bare.h"

#define TEST(type, name)                                                        \
  static NOINLINE uint64_t name(type a, type b) {                               \
    uint64_t h = 0;                                                             \
    h = h * 31 + (uint64_t)(type)(a + b);                                       \
    h = h * 31 + (uint64_t)(type)(a - b);                                       \
    h = h * 31 + (uint64_t)(type)((uint64_t)a * (uint64_t)b);                   \
    h = h * 31 + (uint64_t)(type)(a & b);                                       \
    h = h * 31 + (uint64_t)(type)(a | (type)~b);                                \
    h = h * 31 + (uint64_t)(type)(a ^ b);                                       \
    h = h * 31 + (uint64_t)(type)((uint64_t)a << (b & (8 * sizeof(type) - 1))); \
    h = h * 31 + (uint64_t)(type)(a >> (b & (8 * sizeof(type) - 1)));           \
    h = h * 31 + (uint64_t)((a < b) + 2 * (a == b) + 4 * (a <= b));             \
    h = h * 31 + (uint64_t)(a > b ? a : b);                                     \
    return h;                                                                   \
  }

TEST(int8_t, test_s8)
TEST(uint8_t, test_u8)
TEST(int16_t, test_s16)
TEST(uint16_t, test_u16)
TEST(uint32_t, test_u32)
TEST(uint64_t, test_u64)

static NOINLINE int64_t mixed(int8_t a, uint16_t b, int32_t c, uint64_t d) {
  return a * b + c - (int64_t)(d >> 3) + (int64_t)a * c + (uint8_t)a * (int16_t)b;
}

int main(void) {
  static const uint64_t values[] = {0,
                                    1,
                                    2,
                                    7,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x7fffffffffffffff,
                                    0x8000000000000000,
                                    0xffffffffffffffff,
                                    0x123456789abcdef0};
  for (size_t i = 0; i < LENGTH(values); i++) {
    uint64_t h = 0;
    for (size_t j = 0; j < LENGTH(values); j++) {
      uint64_t a = values[i], b = values[j];
      h ^= test_s8((int8_t)a, (int8_t)b) + test_u8((uint8_t)a, (uint8_t)b);
      h = h << 7 | h >> 57;
      h ^= test_s16((int16_t)a, (int16_t)b) + test_u16((uint16_t)a, (uint16_t)b);
      h = h << 7 | h >> 57;
      h ^= test_u32((uint32_t)a, (uint32_t)b) + test_u64(a, b);
      h += (uint64_t)mixed((int8_t)a, (uint16_t)b, (int32_t)(a >> 8), b);
    }
    print("%16lx %16lx\n", values[i], h);
  }
  return 0;
}
