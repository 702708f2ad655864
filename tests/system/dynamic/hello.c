// What the C library does before and after main, and with the environment.
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}
static void at_end(void) { puts("end"); }

int main(int argc, char** argv) {
  atexit(at_end);
  setlocale(LC_ALL, "C");
  qsort(argv + 1, (size_t)argc - 1, sizeof *argv, compare);
  for (int i = 1; i < argc; ++i) printf("%s ", argv[i]);
  printf("%.17g %s\n", sin((double)argc), getenv("NAME") ? getenv("NAME") : "-");
  char text[64];
  const time_t when = 86400;
  strftime(text, sizeof text, "%Y-%m-%d", gmtime(&when));
  puts(text);
  return 3;
}
