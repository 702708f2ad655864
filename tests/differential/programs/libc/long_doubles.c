// long double is 128 bits wide here: arithmetic in software, printing, parsing, libm.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  long double a = strtold("1.1", NULL), b = 3.0L, sum = 0;
  for (int i = 1; i <= 30; i++) sum += 1.0L / i;
  printf("%.33Lg %.33Lg %.33Lg\n", a, a / b, sum);
  printf("%.33Lg %.33Lg %.33Lg\n", sqrtl(2), expl(1), atanl(1) * 4);
  printf("%La %Le %Lf\n", a * a * a, 1 / a, -a * 1e10L);
  printf("%d %d %d %d\n", a < b, a == 1.1L, a != 1.1, (int)(b * 7.9L));
  printf("%lld %llu %g %g\n", (long long)(1e18L * 3), (unsigned long long)1.8e19L,
         (double)(a - 1.1L), (double)(float)a);
  printf("%.33Lg %.33Lg\n", (long double)0.1, (long double)123456789012345678ll);
  printf("%.20Lg %.20Lg %.20Lg\n", powl(2, 0.5L), fmodl(1e20L, 7), floorl(-2.5L));
  return 0;
}
