/* System calls of RISC-V, with up to six arguments of any type, and what 32-bit ones take. */
#ifndef GPUSIM_TESTS_LINUX_CALLS_H
#define GPUSIM_TESTS_LINUX_CALLS_H

#include <stdint.h>

typedef unsigned long word;

__attribute__((unused)) static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r0 __asm__("a0") = a;
  register long r1 __asm__("a1") = b;
  register long r2 __asm__("a2") = c;
  register long r3 __asm__("a3") = d;
  register long r4 __asm__("a4") = e;
  register long r5 __asm__("a5") = f;
  register long n __asm__("a7") = number;
  __asm__ volatile("ecall"
                   : "+r"(r0)
                   : "r"(n), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
                   : "memory");
  return r0;
}
#define CALL0(n) call(n, 0, 0, 0, 0, 0, 0)
#define CALL2(n, a, b) call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL5(n, a, b, c, d, e) call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL6(n, a, b, c, d, e, f) \
  call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

struct time64 {
  int64_t seconds, nanoseconds;
};
struct vector {
  const void* base;
  word size;
};
struct message {
  void* name;
  uint32_t name_size;
  const struct vector* vectors;
  word count;
  void* control;
  word control_size;
  uint32_t flags;
};

#endif
