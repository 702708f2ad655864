// The C library's generators, seeded: rand, random, rand_r, drand48 and relatives.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  unsigned seed = 5;
  for (int i = 0; i < 5; i++) printf("%d ", rand());
  srand(42);
  for (int i = 0; i < 5; i++) printf("%d ", rand());
  srandom(7);
  for (int i = 0; i < 5; i++) printf("%ld ", random());
  puts("");
  for (int i = 0; i < 5; i++) printf("%d ", rand_r(&seed));
  srand48(99);
  for (int i = 0; i < 5; i++) printf("%.17g %ld %ld\n", drand48(), lrand48(), mrand48());
  unsigned short state[3] = {1, 2, 3};
  printf("%.17g %ld\n", erand48(state), nrand48(state));
  int hits = 0;
  for (int i = 0; i < 3000; i++) {
    double x = drand48(), y = drand48();
    hits += x * x + y * y < 1;
  }
  printf("pi is about %.3f\n", 4.0 * hits / 3000);
  return 0;
}
