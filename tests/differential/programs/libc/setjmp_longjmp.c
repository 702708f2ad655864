// Non-local jumps: out of deep calls, in a loop, as exceptions; callee-saved registers survive.
#include <setjmp.h>
#include <stdio.h>

static jmp_buf stack[8];
static int depth;

__attribute__((noinline)) static void dive(int n, int value) {
  volatile double pad[4] = {n, n + 1, n + 2, n + 3};
  if (n == 0) longjmp(stack[depth - 1], value);
  dive(n - 1, value);
  pad[0] += 1;
}

__attribute__((noinline)) static int guarded(int n, int value) {
  int code = setjmp(stack[depth++]);
  if (code == 0) {
    dive(n, value);
    puts("not reached");
  }
  depth--;
  return code;
}

__attribute__((noinline)) static int nested(int levels) {
  if (levels == 0) longjmp(stack[depth - 1], 99);
  int code = setjmp(stack[depth++]);
  if (code == 0) nested(levels - 1);
  depth--;
  if (depth > 0) longjmp(stack[depth - 1], code - 1);
  return code;
}

int main(void) {
  double kept = 3.25, other = 1.0 / 7;
  long a = 11, b = 22, c = 33;
  for (int i = 0; i < 5; i++) printf("%d -> %d\n", i, guarded(i * 10, i));
  volatile int tries = 0;
  jmp_buf again;
  int code = setjmp(again);
  printf("try %d code %d\n", tries, code);
  if (++tries < 4) longjmp(again, tries * 7);
  printf("nested %d\n", nested(5));
  printf("%g %.17g %ld %ld %ld\n", kept, other, a, b, c);
  return 0;
}
