// Functions of a shared object: profiles and reports of faults name them, and their lines.
#include <stdlib.h>

__attribute__((noinline)) static int sum_up(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * (sum & 3);
  return sum;
}

int library_work(const int* values, int count) { return sum_up(values, count) + 1; }

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

void library_sort(int* values, int count) { qsort(values, count, sizeof *values, compare); }

void library_store(int* to) { *to = 1; }  // FAULT

static int shared;
void library_race(void) { ++shared; }  // RACE
