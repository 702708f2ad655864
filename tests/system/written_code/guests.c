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

// Code in two neighbouring pages that stay writable; a pair of vectors is stored between them.
static int beside_two(void) {
  char* pages =
      mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *first = pages + 1024, *second = pages + 4096 + 1024, *border = pages + 4096;
  memcpy(first, code, sizeof code);
  memcpy(second, code, sizeof code);
  if (call(first) + call(second) != 84) return 99;
  __asm__ volatile("movi v0.16b, #5\n\tstp q0, q0, [%0, #-16]" ::"r"(border) : "v0", "memory");
  return call(first) + call(second) + border[15];
}

static int near_the_program(void) {
  const size_t size = 100 << 20, place = 50 << 20;
  char* room = mmap((char*)(((uintptr_t)patched | 4095) + 1), size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED || mprotect(room + place, 4096, PROT_READ | PROT_WRITE)) return 98;
  memcpy(room + place, code, sizeof code);
  return mprotect(room + place, 4096, PROT_READ | PROT_EXEC) ? 99 : call(room + place);
}

int main(int argc, char** argv) {
  const int how = argc > 1 ? atoi(argv[1]) : 0;
  printf("before %d\n", patched());
  fflush(stdout);
  if (how == 6) return beside_two();
  if (how == 7) return near_the_program();
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
