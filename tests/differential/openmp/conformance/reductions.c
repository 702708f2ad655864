// reduction: operators, types, arrays, user-defined ones; scan.
#include <math.h>
#include <omp.h>
#include <stdio.h>

struct range { int least, most; };
static struct range widen(struct range a, struct range b) {
  if (b.least < a.least) a.least = b.least;
  if (b.most > a.most) a.most = b.most;
  return a;
}
#pragma omp declare reduction(widen : struct range : omp_out = widen(omp_out, omp_in)) \
    initializer(omp_priv = {1 << 30, -(1 << 30)})

int main(void) {
  enum { kCount = 1000 };
  int sum = 3, product = 1, both = -1, either = 0, differ = 0, all = 1, any = 0;
  long least = 1L << 40, most = -(1L << 40);
  double total = 0, halves = 1024;
  float single = 0;
#pragma omp parallel for reduction(+ : sum, total, single) reduction(* : product) \
    reduction(& : both) reduction(| : either) reduction(^ : differ) reduction(&& : all) \
    reduction(|| : any) reduction(min : least) reduction(max : most) reduction(- : halves)
  for (int i = 1; i <= kCount; ++i) {
    sum += i;
    product *= i % 100 == 0 ? 3 : 1;
    both &= ~(1 << i % 20);
    either |= 1 << i % 13;
    differ ^= i * 2654435761u;
    all = all && i > 0;
    any = any || i == 777;
    const long value = (long)i * 7919 % 100003 - 50000;
    if (value < least) least = value;
    if (value > most) most = value;
    total += i * 0.25;
    single += 0.5f;
    halves -= 0.5;
  }
  printf("%d %d %x %x %x %d %d %ld %ld %.2f %.1f %.1f\n", sum, product, both, either, differ, all,
         any, least, most, total, single, halves);

  int histogram[16] = {0};
  double sections[4] = {1, 2, 3, 4};
#pragma omp parallel for reduction(+ : histogram, sections[1 : 2])
  for (int i = 0; i < kCount; ++i) {
    ++histogram[i * i % 16];
    sections[1 + i % 2] += 1;
  }
  for (int i = 0; i < 16; ++i) printf("%d ", histogram[i]);
  printf("%.0f %.0f %.0f %.0f\n", sections[0], sections[1], sections[2], sections[3]);

  struct range r = {500, 500};
#pragma omp parallel for reduction(widen : r) schedule(dynamic, 3)
  for (int i = 0; i < kCount; ++i) r = widen(r, (struct range){i * 37 % 1001, i * 37 % 1001});
  printf("range %d %d\n", r.least, r.most);

  int prefix[kCount], exclusive[kCount], running = 0;
#pragma omp parallel for reduction(inscan, + : running)
  for (int i = 0; i < kCount; ++i) {
    running += i;
#pragma omp scan inclusive(running)
    prefix[i] = running;
  }
  running = 0;
#pragma omp parallel for reduction(inscan, + : running)
  for (int i = 0; i < kCount; ++i) {
    exclusive[i] = running;
#pragma omp scan exclusive(running)
    running += i;
  }
  int wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += prefix[i] != i * (i + 1) / 2 || exclusive[i] != i * (i - 1) / 2;
  printf("scan: %d wrong\n", wrong);

  int threads = 0, counted = 0;
#pragma omp parallel reduction(+ : counted)
  {
    counted += 2;
#pragma omp single
    threads = omp_get_num_threads();
  }
  printf("region: %d\n", counted == 2 * threads);
#pragma omp parallel
  {
#pragma omp for reduction(max : most) reduction(+ : sum) nowait
    for (int i = 0; i < kCount; ++i) {
      if (i * 100 > most) most = i * 100;
      sum += i;
    }
  }
  printf("nowait: %ld %d\n", most, sum);
  double _Complex z = 0;
#pragma omp parallel for reduction(+ : z)
  for (int i = 0; i < 64; ++i) z += i + i * 2.0i;
  printf("complex: %.0f %.0f\n", __real__ z, __imag__ z);
  return 0;
}
