// Runs A64 instructions on TestFloat vectors from standard input and compares result and flags.
//   guest OPERANDS FPCR INSTRUCTION...   a record is OPERANDS operands, result, flags: 64-bit words
// All cores share the vectors; instructions are named as in instructions.def. The last line of
// output is the number of vectors; a difference is one line, and status 1.
#include "gpusim_guest.h"

enum { kRecordsPerChunk = 1 << 16, kMaxWords = 5, kReported = 5, kMaxInstructions = 8 };

typedef struct {
  uint64_t low, high, fpsr;
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
    result->fpsr = fpsr;                                                                         \
  }
#include "instructions.def"
#undef OPERATION

static const instruction_t kInstructions[] = {
#define OPERATION(NAME, SHAPE, ELEMENTS, REGISTER, INSTRUCTION) {#NAME, run_##NAME, SHAPE},
#include "instructions.def"
#undef OPERATION
};

static uint64_t records[kRecordsPerChunk * kMaxWords + 1];
static uint64_t chunk_bytes, differences, total;

static int equal(const char* a, const char* b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

static const instruction_t* find(const char* name) {
  for (size_t i = 0; i < sizeof kInstructions / sizeof *kInstructions; i++) {
    if (equal(kInstructions[i].name, name)) return &kInstructions[i];
  }
  return 0;
}

static uint64_t number(const char* text) {
  uint64_t value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + (uint64_t)(*text++ - '0');
  return value;
}

static uint64_t read_chunk(uint64_t wanted) {
  uint64_t have = 0;
  while (have < wanted) {
    const long n =
        gpusim_syscall3(63, 0, (long)(uintptr_t)records + (long)have, (long)(wanted - have));
    if (n <= 0) break;
    have += (uint64_t)n;
  }
  return have;
}

static uint64_t repeat(uint64_t z, int bits) {
  z &= bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
  for (; bits < 64; bits *= 2) z |= z << bits;
  return z;
}

static void expect(shape_t shape, uint64_t z, result_t* result) {
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

static void report(const instruction_t* instruction, const uint64_t* record, uint64_t operands,
                   const result_t* expected, const result_t* got) {
  if (gpusim_fetch_add_u64(&differences, 1) >= kReported) return;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, instruction->name);
  for (uint64_t i = 0; i < operands; i++) {
    gpusim_line_str(&line, " ");
    gpusim_line_hex(&line, record[i], 16);
  }
  const result_t* both[] = {got, expected};
  for (int i = 0; i < 2; i++) {
    gpusim_line_str(&line, i == 0 ? ": " : ", expected ");
    gpusim_line_hex(&line, both[i]->high, 16);
    gpusim_line_str(&line, "'");
    gpusim_line_hex(&line, both[i]->low, 16);
    gpusim_line_str(&line, " fpsr ");
    gpusim_line_hex(&line, both[i]->fpsr, 2);
  }
  gpusim_line_write(&line, GPUSIM_STDOUT);
}

// The flags of TestFloat from bit 4 on: invalid, division by zero, overflow, underflow, inexact.
static uint64_t as_fpsr(uint64_t flags) {
  return (flags >> 4 & 1) | (flags >> 3 & 1) << 1 | (flags >> 2 & 1) << 2 | (flags >> 1 & 1) << 3 |
         (flags & 1) << 4;
}

static void check(const instruction_t* instruction, const uint64_t* record, uint64_t operands,
                  uint64_t fpcr) {
  result_t got, expected;
  uint64_t inputs[3] = {0, 0, 0};
  for (uint64_t i = 0; i < operands; i++) inputs[i] = record[i];
  instruction->run(inputs, fpcr, &got);
  expect(instruction->shape, record[operands], &expected);
  expected.fpsr = as_fpsr(record[operands + 1]);
  if (got.low != expected.low || got.high != expected.high || got.fpsr != expected.fpsr) {
    report(instruction, record, operands, &expected, &got);
  }
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id(), cores = gpusim_core_count();
  char** argv = gpusim_argv();
  const int count = gpusim_argc() - 3;
  if (count < 1 || count > kMaxInstructions) return 2;
  const uint64_t operands = number(argv[1]), fpcr = number(argv[2]), words = operands + 2;
  const instruction_t* instructions[kMaxInstructions];
  for (int i = 0; i < count; i++) {
    instructions[i] = find(argv[3 + i]);
    if (!instructions[i]) {
      if (id == 0) gpusim_puts("no such instruction\n");
      return 2;
    }
  }
  do {
    if (id == 0) chunk_bytes = read_chunk(kRecordsPerChunk * words * 8);
    gpusim_barrier();
    const uint64_t n = chunk_bytes / (words * 8);
    for (int k = 0; k < count; k++) {
      for (uint64_t i = id; i < n; i += cores) {
        check(instructions[k], &records[i * words], operands, fpcr);
      }
    }
    gpusim_barrier();
    if (id == 0) total += n;
  } while (chunk_bytes == kRecordsPerChunk * words * 8);
  if (id == 0) {
    gpusim_line_t line;
    gpusim_line_start(&line);
    gpusim_line_u64(&line, total);
    gpusim_line_write(&line, GPUSIM_STDOUT);
  }
  return differences != 0;
}
