// libm: rounding, remainders, exponents, fused multiply-add, error and gamma functions.
#include <math.h>
#include <stdio.h>

int main(void) {
  static const double values[] = {0.0,
                                  -0.0,
                                  0.5,
                                  1.5,
                                  -1.5,
                                  2.5,
                                  0.49999999999999994,
                                  1e15 + 0.5,
                                  -7.75,
                                  123456.789,
                                  4503599627370497.5,
                                  1e300,
                                  5e-324,
                                  3.0};
  size_t n = sizeof values / sizeof *values;
  for (size_t i = 0; i < n; i++) {
    double x = values[i], whole;
    int e;
    printf("%g: %g %g %g %g %g %g %g", x, floor(x), ceil(x), trunc(x), round(x), rint(x),
           nearbyint(x), roundeven(x));
    double fraction = modf(x, &whole);
    printf(" %a %a", fraction, whole);
    double m = frexp(x, &e);
    printf(" %a %d %a %a %d %a", m, e, ldexp(x, 3), scalbn(x, -1060), x != 0 ? ilogb(x) : 0,
           logb(x));
    printf(" %a %a %a %a\n", nextafter(x, 1e308), nextafter(x, -1e308), copysign(x, -1),
           fdim(x, 1));
    if (fabs(x) < 1e9) printf("  %ld %lld %ld\n", lround(x), llrint(x), lrint(x));
    for (size_t j = 2; j < n; j += 3) {
      int q;
      double r = remquo(x, values[j], &q);
      printf(" %a %a %a %d %a", fmod(x, values[j]), remainder(x, values[j]), r, q,
             fma(x, values[j], -x));
    }
    printf(" %a %a %a %a\n", fmin(x, 1), fmax(x, NAN), (double)fmaf((float)x, 3, 1),
           (double)fmodf((float)x, 0.7f));
    if (fabs(x) < 100)
      printf("  %a %a %a %a %a %a\n", erf(x), erfc(x), tgamma(x + 0.25), lgamma(x + 3.5), j0(x),
             y1(fabs(x) + 0.5));
  }
  printf("%d %d %d %d %d\n", fpclassify(0.0) == FP_ZERO, isnan(NAN) != 0, isinf(-INFINITY) != 0,
         isnormal(5e-324) != 0, signbit(-0.0) != 0);
  return 0;
}
