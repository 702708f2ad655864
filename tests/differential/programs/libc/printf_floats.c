// printf: every way to write a floating-point number.
#include <float.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  static const char* const formats[] = {
      "[%f]", "[%.0f]", "[%.3f]",  "[%12.4f]", "[%-12.2f]", "[%+.1f]", "[%e]",      "[%.10e]",
      "[%E]", "[%g]",   "[%.17g]", "[%#g]",    "[%a]",      "[%.3a]",  "[%010.2f]", "[%G]"};
  static const double values[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.5,
                                  0.1,
                                  2.5,
                                  3.5,
                                  123456789.123456789,
                                  1e-5,
                                  9.9999e-5,
                                  1e15,
                                  1e16,
                                  1e100,
                                  5e-324,
                                  2.2250738585072014e-308,
                                  DBL_MAX,
                                  1.0 / 3};
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) printf(formats[f], values[v]);
    printf(formats[f], (double)INFINITY);
    printf(formats[f], (double)-INFINITY);
    printf(formats[f], (double)NAN);
    puts("");
  }
  printf("%.30f\n%.60g\n", 0.1, 1e-30);
  return 0;
}
