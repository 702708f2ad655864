// How guest.c runs an A64 instruction, and what it must leave behind. CONTROL is FPCR.
#ifndef GPUSIM_TESTFLOAT_INSTRUCTION_H
#define GPUSIM_TESTFLOAT_INSTRUCTION_H

#include <stdint.h>

// The result register; the flags as in FPSR.
typedef struct {
  uint64_t low, high, flags;
} result_t;

// How the 128-bit result register looks if an element should be `z`.
typedef enum {
  SCALAR,
  ALL16,
  ALL32,
  ALL64,
  LOW32,
  LOW16,
  HIGH32,
  HIGH16,
  MASK16,
  MASK32,
  MASK64
} shape_t;

typedef struct {
  const char* name;
  void (*run)(const uint64_t* operands, uint64_t fpcr, result_t* result);
  shape_t shape;
} instruction_t;

// Operands stand in every element of v0, v1, v2; the instruction leaves its result in v3.
// Integer operands and results are in x9 and x10.
#define OPERATION(NAME, SHAPE, ELEMENTS, REGISTER, INSTRUCTION)                                  \
  static void run_##NAME(const uint64_t* operands, uint64_t fpcr, result_t* result) {            \
    uint64_t low, high, fpsr, old;                                                               \
    const uint64_t a = operands[0], b = operands[1], c = operands[2];                            \
    __asm__ volatile(                                                                            \
        "mrs %[old], fpcr\n\tmsr fpcr, %[fpcr]\n\tmsr fpsr, xzr\n\t"                             \
        "dup v0." ELEMENTS ", %" REGISTER "[a]\n\tdup v1." ELEMENTS ", %" REGISTER               \
        "[b]\n\t"                                                                                \
        "dup v2." ELEMENTS ", %" REGISTER                                                        \
        "[c]\n\tmov x9, %x[a]\n\tmovi v3.16b, #0xa5\n\t" INSTRUCTION                             \
        "\n\t"                                                                                   \
        "mrs %[fpsr], fpsr\n\tmsr fpcr, %[old]\n\tumov %[low], v3.d[0]\n\tumov %[high], v3.d[1]" \
        : [low] "=&r"(low), [high] "=&r"(high), [fpsr] "=&r"(fpsr), [old] "=&r"(old)             \
        : [a] "r"(a), [b] "r"(b), [c] "r"(c), [fpcr] "r"(fpcr)                                   \
        : "v0", "v1", "v2", "v3", "x9", "x10", "cc", "memory");                                  \
    result->low = low;                                                                           \
    result->high = high;                                                                         \
    result->flags = fpsr;                                                                        \
  }
#include "instructions.def"
#undef OPERATION

static const instruction_t kInstructions[] = {
#define OPERATION(NAME, SHAPE, ELEMENTS, REGISTER, INSTRUCTION) {#NAME, run_##NAME, SHAPE},
#include "instructions.def"
#undef OPERATION
};

static uint64_t repeat(uint64_t z, int bits) {
  z &= bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
  for (; bits < 64; bits *= 2) z |= z << bits;
  return z;
}

static void expect(const instruction_t* instruction, const uint64_t* operands, uint64_t z,
                   result_t* result) {
  (void)operands;
  const shape_t shape = instruction->shape;
  const uint64_t untouched = UINT64_C(0xa5a5a5a5a5a5a5a5);
  const uint64_t mask = z != 0 ? ~UINT64_C(0) : 0;
  result->low = shape == SCALAR                                         ? z
                : shape == MASK16 || shape == MASK32 || shape == MASK64 ? mask
                : shape == ALL64                                        ? z
                : shape == HIGH16 || shape == HIGH32
                    ? untouched
                    : repeat(z, shape == ALL16 || shape == LOW16 ? 16 : 32);
  result->high = shape == SCALAR || shape == LOW16 || shape == LOW32 ? 0
                 : shape == HIGH16                                   ? repeat(z, 16)
                 : shape == HIGH32                                   ? repeat(z, 32)
                                                                     : result->low;
}

// The flags of TestFloat from bit 4 on: invalid, division by zero, overflow, underflow, inexact.
static uint64_t as_flags(uint64_t flags) {
  return (flags >> 4 & 1) | (flags >> 3 & 1) << 1 | (flags >> 2 & 1) << 2 | (flags >> 1 & 1) << 3 |
         (flags & 1) << 4;
}

#endif
