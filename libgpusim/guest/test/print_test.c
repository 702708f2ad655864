// gpusim_snprintf() against the C library's, natively: chosen cases and random ones.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpusim_guest.h"

static unsigned failures;
static uint64_t state;

static uint64_t random_word(void) {
  state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-truncation"

// The same of both, in a room of `size` bytes.
#define SAME(size, format, ...)                                                               \
  do {                                                                                        \
    char ours[2000], theirs[2000];                                                            \
    memset(ours, 'x', sizeof ours);                                                           \
    memset(theirs, 'x', sizeof theirs);                                                       \
    const int our_length = gpusim_snprintf(ours, (size), (format), __VA_ARGS__);              \
    const int their_length = snprintf(theirs, (size), (format), __VA_ARGS__);                 \
    if (our_length != their_length || memcmp(ours, theirs, sizeof ours) != 0) {               \
      ++failures;                                                                             \
      printf("FAILED %s: \"%.200s\" (%d), not \"%.200s\" (%d)\n", (format), ours, our_length, \
             theirs, their_length);                                                           \
    }                                                                                         \
  } while (0)

static double random_double(void) {
  static const double special[] = {0.0,  -0.0,     1.0,  0.5,     1.5,   2.5,      9.5,
                                   99.5, 0.00005,  1e-4, 9.999e9, 1e300, 5e-324,   DBL_MAX,
                                   1e23, 123456.5, 0.1,  1e15,    1e16,  INFINITY, NAN};
  const uint64_t word = random_word();
  double d;
  switch (word % 4) {
    case 0:
      return special[random_word() % (sizeof special / sizeof special[0])];
    case 1:
      return (double)(int64_t)(random_word() % 2000001 - 1000000) / 8;
    case 2:
      return (double)(random_word() >> 40) / 1000;
    default:
      d = 0;
      const uint64_t bits = random_word();
      memcpy(&d, &bits, sizeof d);
      return d;
  }
}

static void random_case(void) {
  char format[64];
  int n = 0;
  format[n++] = '[';
  format[n++] = '%';
  const int is_double = random_word() % 2 == 0;
  const char conversion = is_double ? "fFeEgG"[random_word() % 6] : "diuoxX"[random_word() % 6];
  for (int i = 0; i < 5; ++i) {
    // glibc loses a zero in %#.2g of 99.5 (C11 7.21.6.1: # keeps them).
    const int differs = "-+ #0"[i] == '#' && (conversion | 32) == 'g';
    if (random_word() % 4 == 0 && !differs) format[n++] = "-+ #0"[i];
  }
  if (random_word() % 2 == 0) n += sprintf(format + n, "%d", (int)(random_word() % 40) + 1);
  const uint64_t precision = random_word() % 4;
  if (precision == 0) n += sprintf(format + n, ".%d", (int)(random_word() % 30));
  if (precision == 1) format[n++] = '.';
  static const char* const lengths[] = {"hh", "h", "", "l", "ll", "z", "j", "t"};
  const size_t room = random_word() % 8 == 0 ? random_word() % 30 : 1900;
  if (is_double) {
    sprintf(format + n, "%c]", conversion);
    const double number = random_double();
    SAME(room, format, number);
    return;
  }
  const uint64_t word = random_word() >> (random_word() % 64);
  const uint64_t length = random_word() % 8;
  sprintf(format + n, "%s%c]", lengths[length], conversion);
  if (length < 3) {
    SAME(room, format, (int)word);
  } else {
    SAME(room, format, (long)word);
  }
}

int gpusim_main(void) {
  SAME(100, "%s and %c and %% and %5s|%-5s|%.2s|%5.1s", "text", 'c', "ab", "ab", "abc", "xyz");
  SAME(100, "%*d %-*d %.*f %*.*f", 5, 7, 5, 7, 3, 2.0, -9, -1, 2.5);
  SAME(100, "%p", (void*)&failures);
  SAME(3, "%d", 12345);
  SAME(1, "%d", 12345);
  SAME(100, "%5c|%-5c|", 'a', 'b');
  SAME(1900, "%.0f %.1100f", 0.5, DBL_TRUE_MIN);
  SAME(1900, "%f %.3e %g", DBL_MAX, DBL_MAX, DBL_MIN);
  SAME(100, "%.0e %#.0e %#.0f %#g %g", 15.0, 15.0, 3.0, 3.0, 100000.0);
  SAME(100, "%.0e %.0e %.1e %.0g", 65000.0, 75000.0, 12500000.0, -65000.0);
  const char* const wish = getenv("GPUSIM_SEED");
  const uint64_t seed = wish != NULL ? strtoull(wish, NULL, 0) : (uint64_t)time(NULL);
  state = seed;
  enum { kCases = 200000 };
  for (int i = 0; i < kCases && failures < 10; ++i) random_case();
  if (failures != 0) printf("replay: GPUSIM_SEED=%llu\n", (unsigned long long)seed);
  printf("%d random cases, %u failures\n", kCases, failures);
  return failures != 0;
}
