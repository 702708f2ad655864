// SPDX-License-Identifier: MIT
// What the tests name of kernels.c in a program whose kernels are elsewhere.
#include "kernels.h"

uint64_t test_counter;
uint32_t test_table[4];
