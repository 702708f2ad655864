// Goes wrong a few calls deep, in the way that is asked for.
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) int go_wrong(const char* how, volatile int* at) {
  if (!strcmp(how, "load")) return *at;
  if (!strcmp(how, "jump")) return ((int (*)(void))(unsigned long)at)();
  if (!strcmp(how, "abort")) abort();
  *at = 1;
  return 0;
}
int main(int argc, char** argv) {
  return argc < 2 ? 2 : go_wrong(argv[1], (int*)(0x1000UL * (unsigned long)argc));
}
