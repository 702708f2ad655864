// From the lines of testfloat_gen to records of 64-bit words for the guest:  pack OPERANDS EVERY
// START A line is OPERANDS operands, the result and the exception flags, in hexadecimal; each
// EVERYth line is kept, from line START on. What was kept is counted on standard error.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int fields = atoi(argv[1]) + 2;
  const uint64_t every = strtoull(argv[2], NULL, 10);
  uint64_t left = strtoull(argv[3], NULL, 10), kept = 0;
  char* line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    if (left != 0) {
      left--;
      continue;
    }
    left = every - 1;
    uint64_t record[5];
    char* at = line;
    for (int i = 0; i < fields; i++) {
      char* end;
      record[i] = strtoull(at, &end, 16);
      if (end == at) {
        fprintf(stderr, "pack: cannot read: %s", line);
        return 1;
      }
      at = end;
    }
    if (fwrite(record, sizeof *record, (size_t)fields, stdout) != (size_t)fields) return 1;
    kept++;
  }
  fprintf(stderr, "%llu\n", (unsigned long long)kept);
  free(line);
  return fflush(stdout) == 0 ? 0 : 1;
}
