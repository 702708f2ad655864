// Exit handlers run in reverse; the status of exit() is the process's; buffers are flushed.
#include <stdio.h>
#include <stdlib.h>

static void first(void) { puts("registered first, runs last"); }
static void second(void) { puts("registered second"); }
static void third(void) {
  puts("registered third, registers another");
  atexit(second);
}

__attribute__((constructor)) static void early(void) { puts("constructor"); }
__attribute__((destructor)) static void late(void) { printf("destructor, no newline"); }

int main(void) {
  atexit(first);
  atexit(second);
  atexit(third);
  puts("main");
  exit(42);
}
