// SPDX-License-Identifier: MIT
// Kernels of offload_test.c. In a guest they are functions of the test program itself; natively
// they come from the guest's program as a file.
#ifndef GPUSIM_OFFLOAD_TEST_KERNELS_H
#define GPUSIM_OFFLOAD_TEST_KERNELS_H

#include <stdint.h>

struct node {
  struct node* next;
  uint64_t value;
};

enum { kMostTestCores = 1024 };

extern uint64_t test_counter;   // counted up by count_up()
extern uint32_t test_table[4];  // 10, 20, 30, 40

void nothing(void);
void add(uint64_t core, uint64_t cores, const int32_t* a, const int32_t* b, int32_t* c, uint64_t n);
void all_kinds(uint64_t core, uint64_t cores, int64_t negative, uint64_t affine, uint64_t own,
               double* out, float f, double d, double own_double);
void eight_and_eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                     uint64_t g, double* out, double h, double i, double j, double k, double l,
                     double m, double n, double o);
void sum_list(const struct node* head, uint64_t* sum);
void count_up(void);
void read_globals(uint64_t core, uint64_t* out);
void forever(void);
void await(volatile uint32_t* flag, uint32_t* seen);
void store(uint64_t core, uint64_t which, uint32_t* address);
void load(const uint32_t* address, uint32_t* out);
void undefined_instruction(void);
void leave(uint64_t core, uint64_t which, int status);
void say(uint64_t core, uint64_t which, uint64_t times);
void times_two_plus(uint64_t* value, uint64_t plus);
void neighbours(uint64_t core, uint64_t cores, uint64_t* values, uint64_t* sums);
void signal_and_await(volatile uint32_t* mine, const uint32_t* other);
void many_barriers(uint64_t core, uint64_t cores, uint64_t rounds, uint64_t* sums);
void print(uint64_t core, const char* name, double number);
void place(uint64_t x, uint64_t y, uint64_t columns, uint64_t rows, uint64_t* out);

struct small {
  int16_t a;
  int64_t b;
};
struct large {
  uint64_t values[5];
  float scale;
};
struct point {
  float x, y, z;
};
void structures(uint64_t core, struct small s, struct large l, struct point p, double* out);
void recurse(uint64_t core, uint64_t* out, uint64_t n);

#endif  // GPUSIM_OFFLOAD_TEST_KERNELS_H
