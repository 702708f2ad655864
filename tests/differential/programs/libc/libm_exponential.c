// libm: exponentials, logarithms, powers, roots, in double and float.
#include <math.h>
#include <stdio.h>

int main(void) {
  static const double values[] = {0.0,    -0.0,  1.0,    -1.0,  0.5,   2.0,
                                  10.0,   -10.0, 1e-10,  709.7, 710.0, -745.0,
                                  -746.0, 1e300, 1e-310, 0.1,   3.7,   1.0000001};
  size_t n = sizeof values / sizeof *values;
  for (size_t i = 0; i < n; i++) {
    double x = values[i];
    printf("%g: %a %a %a %a %a %a %a %a %a\n", x, exp(x), exp2(x), expm1(x), log(x), log2(x),
           log10(x), log1p(x), sqrt(x), cbrt(x));
    float f = (float)x;
    printf("  %a %a %a %a %a %a\n", (double)expf(f), (double)exp2f(f), (double)logf(f),
           (double)log2f(f), (double)sqrtf(f), (double)log10f(f));
    for (size_t j = 0; j < n; j += 2) printf(" %a", pow(x, values[j]));
    printf(" %a\n", (double)powf(f, 2.5f));
  }
  return 0;
}
