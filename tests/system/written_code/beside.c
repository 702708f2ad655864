// Code and data in one page that may be written and executed; with -DPATCH the code changes, too.
// With -DTOGETHER it may run on several cores, which store at the same time.
#include <stdint.h>
static uint32_t data[4] __attribute__((section(".text#"))) = {1, 2, 3, 4};
__attribute__((noinline)) int patched(void) {
  __asm__ volatile("");
  return 7;
}
static void leave(long status) {
  register long x8 __asm__("x8") = 94, x0 __asm__("x0") = status;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8) : "memory");
}
void _start(void) {
  volatile uint32_t* d = data;
#ifdef TOGETHER
  for (uint32_t i = 0; i < 100; ++i) d[i & 3] = 1201;
#else
  for (uint32_t i = 0; i < 100; ++i) d[i & 3] += i;
#endif
  int result = patched() + (int)d[0] - 1201;
#ifdef PATCH
  *(volatile uint32_t*)(uintptr_t)patched = 0x52800540;
  __asm__ volatile("dsb sy; isb");
  result = patched();
#endif
  leave(result);
}
