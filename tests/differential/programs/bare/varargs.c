// bits: 64
// Variable arguments: integers, doubles and structures beyond the registers, copied lists.
#include "bare.h"

struct Pair {
  int64_t a, b;
};

static NOINLINE int64_t sum(const char* kinds, ...) {
  va_list list, copy;
  int64_t total = 0;
  va_start(list, kinds);
  va_copy(copy, list);
  for (const char* k = kinds; *k; k++) {
    switch (*k) {
      case 'i':
        total += va_arg(list, int);
        break;
      case 'l':
        total += va_arg(list, int64_t) * 3;
        break;
      case 'd':
        total += (int64_t)(va_arg(list, double) * 16);
        break;
      case 'c':
        total ^= va_arg(list, int) << 8;
        break;
      case 's':
        total += (int64_t)length_of(va_arg(list, const char*));
        break;
      case 'p': {
        struct Pair p = va_arg(list, struct Pair);
        total += p.a * 5 - p.b;
      }
    }
  }
  va_end(list);
  total = total * 7 + (*kinds == 'i' ? va_arg(copy, int) : 0);
  va_end(copy);
  return total;
}

static NOINLINE int largest(int count, ...) {
  va_list list;
  va_start(list, count);
  int best = INT32_MIN;
  while (count--) {
    int v = va_arg(list, int);
    if (v > best) best = v;
  }
  va_end(list);
  return best;
}

int main(void) {
  struct Pair p = {11, 4};
  print("%ld\n", sum(""));
  print("%ld\n", sum("iii", 1, -2, 3));
  print("%ld\n", sum("ddd", 1.5, -2.25, 1e6));
  print("%ld\n", sum("iliclidsip", 1, 2L, 3, 'x', 4L, 5, 0.5, "text", 6, p));
  print("%ld\n", sum("ddddddddddd", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0));
  print("%ld\n", sum("iiiiiiiiiidpdp", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.25, p, 0.75, p));
  print("%d %d\n", largest(3, -5, -2, -9), largest(12, 1, 2, 3, 4, 5, 6, 77, 8, 9, 10, 11, 12));
  return 0;
}
