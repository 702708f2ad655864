// Programs that write code. MODE chooses how; each would return 42 on a machine that runs it.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint32_t code[] = {0x52800540, 0xd65f03c0};  // mov w0, #42; ret
__attribute__((noinline)) int patched(void) {
  __asm__ volatile("");
  return 1;
}
static int call(void* p) {
  __builtin___clear_cache(p, (char*)p + sizeof code);
  return ((int (*)(void))p)();
}

int main(int argc, char** argv) {
  const int how = argc > 1 ? atoi(argv[1]) : 0;
  printf("before %d\n", patched());
  fflush(stdout);
  void* page = mmap(0, 4096, PROT_READ | PROT_WRITE | (how == 1 ? PROT_EXEC : 0),
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof code);
  uint32_t on_stack[2];
  memcpy(on_stack, code, sizeof code);
  switch (how) {
    case 1:
      return call(page);
    case 2:
      return mprotect(page, 4096, PROT_READ | PROT_EXEC) ? 99 : call(page);
    case 3:
      return call(on_stack);
    case 4:  // of a segment that may be written
      memcpy((void*)patched, code, sizeof code);
      return call((void*)patched);
    case 5:
      return mprotect((void*)((uintptr_t)patched & -4096), 4096, 7) ? 77 : 99;
  }
  return 0;
}
