// printf: integers of all lengths, flags, widths, precisions; strings, characters, %n's cousins.
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

int main(void) {
  static const char* const formats[] = {
      "[%d]", "[%5d]", "[%-5d]",   "[%05d]", "[%+d]", "[% d]", "[%.3d]", "[%8.3d]", "[%-8.3d|]",
      "[%x]", "[%#x]", "[%#010X]", "[%o]",   "[%#o]", "[%u]",  "[%'d]",  "[%.0d]"};
  static const int values[] = {0, 1, -1, 42, -12345, INT_MAX, INT_MIN};
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) printf(formats[f], values[v]);
    puts("");
  }
  printf("%hhd %hhu %hd %hu\n", 300, 300, 70000, 70000);
  printf("%ld %lu %lld %llx %zu %jd %td\n", LONG_MIN, ULONG_MAX, LLONG_MAX, 0xfedcba9876543210ull,
         sizeof(int), (intmax_t)-5, (ptrdiff_t)7);
  printf("%" PRId64 " %" PRIu32 " %" PRIx16 "\n", INT64_C(-7), UINT32_C(9), (uint16_t)0xbeef);
  printf("[%s] [%10s] [%-10s] [%.2s] [%*.*s] [%c] [%3c] [%%]\n", "text", "right", "left", "cut", 8,
         3, "abcdef", 'x', 'y');
  printf("%2$s %1$s %3$d\n", "world", "hello", 3);
  int written = 0;
  char buffer[16];
  written = snprintf(buffer, sizeof buffer, "%s-%d", "a long string, cut short", 5);
  printf("%d [%s]\n", written, buffer);
  printf("%p %p\n", (void*)0, (void*)0x1234abcd);
  return 0;
}
