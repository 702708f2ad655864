/* What the programs of GCC's dg suites ask for beside the torture programs' run-time. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#define WEAK __attribute__((weak, noinline))
#undef stdout
#undef stderr
FILE* stdout;
FILE* stderr;
int vprintf(const char*, va_list);

/* A program sets a handler for a processor without vectors: none is like that here. */
WEAK __sighandler_t signal(int number, __sighandler_t handler) {
  (void)number;
  (void)handler;
  return 0;
}

WEAK int fprintf(FILE* file, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int written = vprintf(format, list);
  va_end(list);
  (void)file;
  return written;
}
