// libm: trigonometric and hyperbolic functions, small and huge arguments.
#include <math.h>
#include <stdio.h>

int main(void) {
  static const double values[] = {0.0,
                                  -0.0,
                                  1e-300,
                                  1e-8,
                                  0.1,
                                  0.5,
                                  0.785398163397448,
                                  1.0,
                                  1.5707963267948966,
                                  2.0,
                                  3.141592653589793,
                                  10.0,
                                  100.5,
                                  1e5,
                                  1e10,
                                  1e22,
                                  1.7e308,
                                  -0.3,
                                  -4.0,
                                  -1e6};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    double x = values[i];
    printf("%g: %a %a %a %a %a %a", x, sin(x), cos(x), tan(x), atan(x), asin(x / 2e308),
           acos(1 / (1 + x * x)));
    if (fabs(x) < 200) printf(" %a %a %a", sinh(x), cosh(x), tanh(x));
    printf(" %a %a %a\n", asinh(x), acosh(1 + fabs(x) / 1e10), atanh(1 / (2 + fabs(x))));
    double s, c;
    float fx = (float)x;
    s = sin(x + 1), c = cos(x + 1);
    printf("  %a %a %a %a %a %a\n", s, c, (double)sinf(fx), (double)cosf(fx), (double)tanf(fx),
           (double)atanf(fx));
  }
  for (int y = -2; y <= 2; y++)
    for (int x = -2; x <= 2; x++) printf("%.17g ", atan2(y, x));
  printf("\n%a %a %a\n", hypot(3, 4), hypot(1e200, 1e200), hypot(1e-300, 1e-300));
  return 0;
}
