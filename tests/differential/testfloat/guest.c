// Runs instructions on TestFloat vectors from standard input and compares result and flags.
//   guest OPERANDS CONTROL INSTRUCTION...   a record is OPERANDS operands, result, flags: 64-bit
//   words. CONTROL is what the ISA's instruction.h makes of it: a rounding mode at least.
// All cores share the vectors; instructions are named as in the ISA's instructions.def. The last
// line of output is the number of vectors; a difference is one line, and status 1.
#include "instruction.h"

#include "gpusim_guest.h"

enum { kRecordsPerChunk = 1 << 16, kMaxWords = 5, kReported = 5, kMaxInstructions = 8 };

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
    gpusim_line_str(&line, " flags ");
    gpusim_line_hex(&line, both[i]->flags, 2);
  }
  gpusim_line_write(&line, GPUSIM_STDOUT);
}

static void check(const instruction_t* instruction, const uint64_t* record, uint64_t operands,
                  uint64_t control) {
  result_t got, expected;
  uint64_t inputs[3] = {0, 0, 0};
  for (uint64_t i = 0; i < operands; i++) inputs[i] = record[i];
  instruction->run(inputs, control, &got);
  expect(instruction, inputs, record[operands], &expected);
  expected.flags = as_flags(record[operands + 1]);
  if (got.low != expected.low || got.high != expected.high || got.flags != expected.flags) {
    report(instruction, record, operands, &expected, &got);
  }
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id(), cores = gpusim_core_count();
  char** argv = gpusim_argv();
  const int count = gpusim_argc() - 3;
  if (count < 1 || count > kMaxInstructions) return 2;
  const uint64_t operands = number(argv[1]), control = number(argv[2]), words = operands + 2;
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
        check(instructions[k], &records[i * words], operands, control);
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
