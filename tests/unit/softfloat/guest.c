// Executes each instruction of cases.def on the shared operand sequence and writes one record
// {result, FPSR} per execution to standard output.
// Arguments: seed, number of executions of each instruction.
#include <stdio.h>
#include <stdlib.h>

#include "sequence.h"

struct record {
  uint64_t result;
  uint64_t fpsr;
};

static struct record* records;

__attribute__((noinline)) static void flush_records(uint64_t count) {
  if (fwrite(records, sizeof *records, count, stdout) != count) {
    perror("guest: cannot write results");
    exit(1);
  }
}

#define RESULT_FP "fmov x0, d0\n"
#define RESULT_INT "\n"
#define RESULT_FLAGS "mrs x0, nzcv\nlsr x0, x0, #28\n"

#define CASE(kind, result_text, instruction, expression)                           \
  for (uint64_t i = 0; i < count; ++i) {                                           \
    uint64_t in[3];                                                                \
    if (i % kSamplesPerFpcr == 0) fpcr = random_fpcr(&sequence);                   \
    random_operands(&sequence, kind, in);                                          \
    register uint64_t x0 __asm__("x0") = in[0];                                    \
    uint64_t fpsr;                                                                 \
    __asm__ volatile(                                                              \
        "msr fpcr, %[fpcr]\nmsr fpsr, xzr\n"                                       \
        "fmov d0, x0\nfmov d1, %[b]\nfmov d2, %[c]\n" instruction "\n" result_text \
        "mrs %[fpsr], fpsr\nmsr fpcr, xzr\n"                                       \
        : "+r"(x0), [fpsr] "=&r"(fpsr)                                             \
        : [fpcr] "r"(fpcr), [b] "r"(in[1]), [c] "r"(in[2])                         \
        : "v0", "v1", "v2", "cc");                                                 \
    records[i].result = x0;                                                        \
    records[i].fpsr = fpsr;                                                        \
  }                                                                                \
  flush_records(count);

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: guest SEED COUNT\n");
    return 2;
  }
  struct sequence sequence = {strtoull(argv[1], NULL, 0)};
  const uint64_t count = strtoull(argv[2], NULL, 0);
  records = malloc(count * sizeof *records);
  if (records == NULL) return 1;
  uint64_t fpcr = 0;
#include "cases.def"
  return 0;
}
