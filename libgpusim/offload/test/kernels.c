// SPDX-License-Identifier: MIT
#include "kernels.h"

#include "gpusim_guest.h"
#include "gpusim_sync.h"

uint64_t test_counter;
uint32_t test_table[4] = {10, 20, 30, 40};

void nothing(void) {}

void add(uint64_t core, uint64_t cores, const int32_t* a, const int32_t* b, int32_t* c,
         uint64_t n) {
  for (uint64_t i = core; i < n; i += cores) c[i] = a[i] + b[i];
}

void all_kinds(uint64_t core, uint64_t cores, int64_t negative, uint64_t affine, uint64_t own,
               double* out, float f, double d, double own_double) {
  out[core] = (double)negative + (double)affine * 1e3 + (double)own * 1e6 + (double)f + d +
              own_double + (double)cores * 1e-3;
}

void eight_and_eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                     uint64_t g, double* out, double h, double i, double j, double k, double l,
                     double m, double n, double o) {
  const uint64_t words[7] = {a, b, c, d, e, f, g};
  const double numbers[8] = {h, i, j, k, l, m, n, o};
  for (int x = 0; x < 7; ++x) out[x] = (double)words[x];
  for (int x = 0; x < 8; ++x) out[7 + x] = numbers[x];
}

void sum_list(const struct node* head, uint64_t* sum) {
  uint64_t s = 0;
  for (; head != 0; head = head->next) s += head->value;
  *sum = s;
}

void count_up(void) { gpusim_fetch_add_u64(&test_counter, 1); }

void read_globals(uint64_t core, uint64_t* out) { out[core] = test_counter + test_table[core % 4]; }

void forever(void) {
  for (;;) __asm__ volatile("");
}

// Until the caller writes.
void await(volatile uint32_t* flag, uint32_t* seen) {
  while (*flag == 0) gpusim_yield();
  *seen = *flag;
}

void store(uint64_t core, uint64_t which, uint32_t* address) {
  if (core == which) *address = 1;
}

void load(const uint32_t* address, uint32_t* out) { *out = *address; }

void undefined_instruction(void) {
#ifdef __aarch64__
  __asm__ volatile(".inst 0");
#endif
}

void leave(uint64_t core, uint64_t which, int status) {
  if (core == which) gpusim_exit(status);
}

void say(uint64_t core, uint64_t which, uint64_t times) {
  for (uint64_t i = 0; core == which && i < times; ++i) gpusim_write_all(1, "hello\n", 6);
}

void times_two_plus(uint64_t* value, uint64_t plus) { *value = *value * 2 + plus; }

// With a barrier between writing and reading.
void neighbours(uint64_t core, uint64_t cores, uint64_t* values, uint64_t* sums) {
  values[core] = core * core;
  gpusim_barrier();
  sums[core] = values[(core + 1) % cores] + values[(core + cores - 1) % cores];
  gpusim_barrier();
}

// Two of them, one after the other, would never end.
void signal_and_await(volatile uint32_t* mine, const uint32_t* other) {
  *mine = 1;
  gpusim_wait_while_equal(other, 0);
}

void many_barriers(uint64_t core, uint64_t cores, uint64_t rounds, uint64_t* sums) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    gpusim_barrier();
    sum += gpusim_sum_u64(core + i);
  }
  sums[core] = sum + cores;
}

void print(uint64_t core, const char* name, double number) {
  gpusim_printf("core %2d of %s: ", (int)core, name);
  gpusim_printf("%.3f\n", number * (double)core);
}

void place(uint64_t x, uint64_t y, uint64_t columns, uint64_t rows, uint64_t* out) {
  out[y * columns + x] = x + 1000 * y + 1000000 * columns + 1000000000 * rows;
}

// Its copy of `l` is its own: it may write to it.
void structures(uint64_t core, struct small s, struct large l, struct point p, double* out) {
  l.values[core % 5] += core;
  gpusim_barrier();
  uint64_t sum = 0;
  for (int i = 0; i < 5; ++i) sum += l.values[i];
  out[core] = (double)s.a + (double)s.b * 10 + (double)sum * (double)l.scale +
              (double)(p.x + p.y * 2 + p.z * 4) * 1e6;
}

static uint64_t deep(uint64_t n) {
  volatile uint64_t frame[64];
  frame[n % 64] = n;
  return n == 0 ? 0 : deep(n - 1) + frame[n % 64];
}

void recurse(uint64_t core, uint64_t* out, uint64_t n) { out[core] = deep(n); }
