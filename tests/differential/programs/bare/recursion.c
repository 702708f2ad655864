// Deep and branching recursion.
#include "bare.h"

static NOINLINE uint64_t fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static NOINLINE unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

static uint64_t moves;
static NOINLINE void hanoi(int n, int from, int to, int via) {
  if (n == 0) return;
  hanoi(n - 1, from, via, to);
  moves = moves * 7 + (uint64_t)(from * 3 + to);
  hanoi(n - 1, via, to, from);
}

static NOINLINE int is_even(int n);
static NOINLINE int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
static NOINLINE int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }

static NOINLINE int depth(int n) {
  volatile char pad[200];
  pad[n % 200] = (char)n;
  return n == 0 ? pad[0] : 1 + depth(n - 1) + (pad[n % 200] & 0);
}

static NOINLINE unsigned collatz(uint64_t n) {
  return n == 1 ? 0 : 1 + collatz(n % 2 ? 3 * n + 1 : n / 2);
}

int main(void) {
  for (unsigned i = 0; i <= 16; i++) print("fib %u = %lu\n", i, fibonacci(i));
  for (unsigned m = 0; m < 3; m++)
    for (unsigned n = 0; n < 5; n++) print("ack(%u,%u) = %u\n", m, n, ackermann(m, n));
  hanoi(9, 1, 3, 2);
  print("hanoi %16lx\n", moves);
  print("even %d odd %d depth %d\n", is_even(500), is_odd(500), depth(300));
  for (unsigned i = 1; i < 30; i++) print("%u ", collatz(i));
  print("\n");
  return 0;
}
