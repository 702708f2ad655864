// isa: aarch64
// Addressing: unaligned, sign-extending, pairs, pre- and post-indexed, register offsets, literals.
#include "bare.h"

static uint8_t memory[256] __attribute__((aligned(64)));

static NOINLINE uint64_t pairs(uint64_t* p) {
  uint64_t a, b, c, d;
  __asm__ volatile(
      "ldp %0, %1, [%4], #16\n"
      "ldp %2, %3, [%4, #16]!\n"
      "stp %3, %0, [%4, #-8]\n"
      "ldpsw %0, %2, [%4, #8]\n"
      "stp %w1, %w3, [%4], #24\n"
      "ldnp %1, %3, [%4, #-48]\n"
      : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "+r"(p)
      :
      : "memory");
  return a ^ b * 3 ^ c * 5 ^ d * 7;
}

static NOINLINE uint64_t offsets(const uint8_t* p, int64_t x, uint32_t w) {
  uint64_t a, b, c, d;
  __asm__ volatile(
      "ldr %0, [%4, %5, lsl #3]\n"
      "ldrsw %1, [%4, %w6, uxtw #2]\n"
      "ldrsh %w2, [%4, %w6, sxtw #1]\n"
      "ldrsb %3, [%4, %5]\n"
      : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d)
      : "r"(p), "r"(x), "r"(w));
  return a + 3 * b + 5 * c + 7 * d;
}

static NOINLINE uint64_t indexed(uint8_t* p) {
  uint64_t a, b, c;
  __asm__ volatile(
      "ldrb %w0, [%3], #5\n"
      "ldrsh %1, [%3, #-3]!\n"
      "str %1, [%3, #13]!\n"
      "ldur %2, [%3, #-7]\n"
      "sturh %w2, [%3, #-1]\n"
      "strb %w0, [%3], #-2\n"
      "ldrsw %0, [%3]\n"
      : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(p)
      :
      : "memory");
  return a + 3 * b + 5 * c;
}

static NOINLINE uint64_t vectors(uint8_t* p) {
  uint64_t a, b;
  __asm__ volatile(
      "ldr q0, [%2, #3]\n"
      "ldp d1, d2, [%2, #24]\n"
      "ldur s3, [%2, #-5]\n"
      "ldr h4, [%2, #2]\n"
      "ldr b5, [%2, #1]\n"
      "stp q0, q0, [%2, #32]!\n"
      "str d1, [%2], #8\n"
      "stur s3, [%2, #-1]\n"
      "str h4, [%2, #6]\n"
      "str b5, [%2]\n"
      "umov %0, v0.d[1]\n"
      "fmov %1, d2\n"
      : "=&r"(a), "=&r"(b), "+r"(p)
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "memory");
  return a ^ b;
}

static NOINLINE uint64_t literals(void) {
  uint64_t a, b, c;
  __asm__ volatile(
      "ldr %0, 1f\n"
      "ldr %w1, 2f\n"
      "ldrsw %2, 2f\n"
      "b 3f\n"
      ".balign 8\n"
      "1: .quad 0x0123456789abcdef\n"
      "2: .word 0x89abcdef\n"
      "3:\n"
      : "=r"(a), "=r"(b), "=r"(c));
  return a + b + c;
}

#define UNALIGNED(type)                                 \
  static NOINLINE int64_t unaligned_##type(size_t at) { \
    type v;                                             \
    memcpy(&v, memory + at, sizeof v);                  \
    v = (type)(v + 1);                                  \
    memcpy(memory + at + 1, &v, sizeof v);              \
    return (int64_t)v;                                  \
  }
UNALIGNED(int8_t)
UNALIGNED(int16_t)
UNALIGNED(uint16_t)
UNALIGNED(int32_t)
UNALIGNED(uint32_t)
UNALIGNED(int64_t)

int main(void) {
  for (size_t i = 0; i < sizeof memory; i++) memory[i] = (uint8_t)(i * 37 + (i >> 3));
  for (size_t i = 1; i < 100; i += 9) {
    print("%ld %ld %ld ", unaligned_int8_t(i), unaligned_int16_t(i + 1), unaligned_uint16_t(i + 2));
    print("%ld %ld %ld\n", unaligned_int32_t(i + 3), unaligned_uint32_t(i + 5),
          unaligned_int64_t(i + 6));
  }
  print("%16lx\n", pairs((uint64_t*)memory));
  print("%16lx\n", pairs((uint64_t*)(memory + 3)));
  for (int i = -4; i < 5; i++)
    print("%16lx\n", offsets(memory + 100, i, (uint32_t)(i < 0 ? -i : i)));
  print("%16lx %16lx %16lx\n", indexed(memory + 20), vectors(memory + 50), literals());
  uint32_t h = 0;
  for (size_t i = 0; i < sizeof memory; i++) h = h * 31 + memory[i];
  print("%8x\n", h);
  return 0;
}
